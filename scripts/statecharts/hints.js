import {readFileSync,existsSync} from 'node:fs'
export const hintsFor = () => Object.fromEntries(['run.work','run.process','run.delivery'].map(id=>{const f=`/tmp/tune.${id}.${process.env.TS??1}.json`;if(!existsSync(f))return [id,{}];const g=JSON.parse(readFileSync(f)).g;return [id,{seeds:{[id]:g.seed},rows:g.rows,layering:g.layering,homes:g.homes,placement:g.np}]}))
