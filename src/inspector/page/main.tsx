/** Begins the page. */
import { render } from 'preact'
import { App } from './app.js'
import './style/base.css'
import './style/fleet.css'
import './style/run.css'
import './style/chart.css'

const root = document.getElementById('app')
if (root !== null) render(<App />, root)
