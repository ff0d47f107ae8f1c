// Compares caches by http-tests/cache-tests, in one run: Weir with both sets of rules, and nginx.
//
//     node conformance/cache-tests.mjs SUITE --weir PROGRAM [--nginx PROGRAM] [--keep FOLDER]
//
// SUITE is a work tree of https://github.com/http-tests/cache-tests, of which nothing is copied.
// Its results depend on each other: a case counts as passed if those that it depends on have passed
// as well. The table is that of conformance/README.md. The exit code is 0 if Weir's default rules
// differ from nginx in no case and `rfc9111` passes as many cases as README.md says.

import { spawn } from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'

/** What the standard rules must pass at least. */
const REQUIRED_MIN = 150
const OPTIMAL_MIN = 75
/** The longest that the suite may take. */
const SUITE_TIMEOUT_MS = 300_000
const START_TIMEOUT_MS = 10_000

function options () {
  const [suite, ...rest] = process.argv.slice(2)
  const options = { suite }
  for (let at = 0; at < rest.length; at += 2) {
    const name = rest[at].replace(/^--/, '')
    if (!['weir', 'nginx', 'keep'].includes(name) || rest[at + 1] === undefined) usage()
    options[name] = rest[at + 1]
  }
  if (suite === undefined || options.weir === undefined) usage()
  return options
}

function usage () {
  console.error('usage: cache-tests.mjs SUITE --weir PROGRAM [--nginx PROGRAM] [--keep FOLDER]')
  process.exit(2)
}

async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.on('listening', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}

async function untilOpen (port) {
  const end = Date.now() + START_TIMEOUT_MS
  while (Date.now() < end) {
    const isOpen = await new Promise(resolve => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isOpen) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`nothing listens on port ${port}`)
}

/** The configuration of every server: that of the suite's own nginx. */
function configuration (folder, port, origin, line) {
  const temporary = ['proxy', 'client_body', 'fastcgi', 'scgi', 'uwsgi']
  return `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
    access_log off;
    ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join('\n    ')}
    proxy_cache_path ${folder}/cache levels=1:2 keys_zone=suite:8m max_size=1000m inactive=600m;
    server {
        listen 127.0.0.1:${port};
        location / {
            proxy_pass http://127.0.0.1:${origin};
            proxy_cache suite;
            proxy_cache_revalidate on;
            proxy_http_version 1.1;
            ${line}
        }
    }
}
`
}

const children = []

function start (program, args, settings) {
  const child = spawn(program, args, { stdio: 'ignore', ...settings })
  child.on('error', error => { console.error(`${program}: ${error.message}`); process.exit(2) })
  children.push(child)
  return child
}

async function startServer (server, folder, origin) {
  server.folder = path.join(folder, server.name.replace(/\W+/g, '-'))
  fs.mkdirSync(path.join(server.folder, 'logs'), { recursive: true })
  server.port = await freePort()
  const file = path.join(server.folder, 'nginx.conf')
  fs.writeFileSync(file, configuration(server.folder, server.port, origin, server.line))
  start(server.program, ['-p', server.folder, '-c', file])
  await untilOpen(server.port)
}

/** Runs the suite's client against a server: the results by case. */
function play (suite, server) {
  const base = `http://127.0.0.1:${server.port}`
  const env = { ...process.env, npm_config_base: base, npm_config_id: '', npm_package_config_id: '' }
  const args = ['--no-warnings', 'test-engine/cli.mjs']
  const client = spawn(process.execPath, args, { cwd: suite, env, timeout: SUITE_TIMEOUT_MS })
  let output = ''
  client.stdout.on('data', data => { output += data })
  return new Promise((resolve, reject) => {
    client.on('close', code => {
      if (code === 0) resolve(JSON.parse(output))
      else reject(new Error(`the suite's client ended with ${code} for ${server.name}`))
    })
  })
}

function table (suites, servers, outcomeOf) {
  const lines = []
  const totals = new Map()
  for (const suite of suites) {
    const cells = servers.flatMap(server => ['required', 'optimal'].map(kind => {
      const cases = suite.tests.filter(test => (test.kind ?? 'required') === kind)
      const passed = cases.filter(test => outcomeOf(server, test) === 'pass').length
      const total = totals.get(`${server.name} ${kind}`) ?? [0, 0]
      totals.set(`${server.name} ${kind}`, [total[0] + passed, total[1] + cases.length])
      return cases.length === 0 ? '' : `${passed}/${cases.length}`
    }))
    if (cells.some(cell => cell !== '')) lines.push([suite.id, ...cells])
  }
  const sums = servers.flatMap(server => ['required', 'optimal'].map(kind =>
    totals.get(`${server.name} ${kind}`).join('/')))
  lines.push(['all', ...sums])
  const head = ['', ...servers.flatMap(server => [`${server.name}: required`, 'optimal'])]
  for (const line of [head, head.map(() => '---'), ...lines]) console.log(`| ${line.join(' | ')} |`)
  return totals
}

async function main () {
  const { suite, weir, nginx, keep } = options()
  const of = name => import(pathToFileURL(path.resolve(suite, name)))
  const suites = (await of('tests/index.mjs')).default
  const { determineTestResult, resultTypes } = await of('test-engine/lib/results.mjs')
  const folder = keep ?? fs.mkdtempSync(path.join(os.tmpdir(), 'cache-tests-'))
  fs.mkdirSync(folder, { recursive: true })
  const servers = [
    { name: 'Weir', program: weir, line: '' },
    { name: 'Weir rfc9111', program: weir, line: 'proxy_cache_rules rfc9111;' }
  ]
  if (nginx !== undefined) servers.push({ name: 'nginx', program: nginx, line: '' })
  const origin = await freePort()
  const settings = { npm_config_protocol: 'http', npm_config_port: String(origin) }
  const env = { ...process.env, ...settings, npm_config_pidfile: path.join(folder, 'origin.pid') }
  start(process.execPath, ['test-engine/server/server.mjs'], { cwd: suite, env })
  await untilOpen(origin)
  for (const server of servers) await startServer(server, path.resolve(folder), origin)
  const played = servers.map(async server => { server.results = await play(suite, server) })
  await Promise.all(played)
  const wordOf = result => Object.keys(resultTypes).find(word => resultTypes[word] === result)
  const outcomeOf = (server, test) =>
    wordOf(determineTestResult(suites, test.id, server.results))
  const totals = table(suites, servers, outcomeOf)
  let isGood = totals.get('Weir rfc9111 required')[0] >= REQUIRED_MIN &&
    totals.get('Weir rfc9111 optimal')[0] >= OPTIMAL_MIN
  console.log('\nNot passed with rfc9111:')
  for (const test of suites.flatMap(suite => suite.tests)) {
    const outcome = outcomeOf(servers[1], test)
    if (test.kind !== 'check' && outcome !== 'pass') {
      console.log(`  ${test.id} (${test.kind ?? 'required'}): ${outcome}`)
    }
  }
  if (nginx !== undefined) {
    const [own, , other] = servers
    const isSame = id => (own.results[id] === true) === (other.results[id] === true)
    const different = Object.keys(own.results).filter(id => !isSame(id))
    console.log(`\nCases in which Weir's default rules and nginx differ: ${different.length}`)
    different.forEach(id => console.log(`  ${id}: Weir ${own.results[id]}, nginx ${other.results[id]}`))
    isGood &&= different.length === 0
  }
  if (keep === undefined) fs.rmSync(folder, { recursive: true })
  return isGood ? 0 : 1
}

let code = 2
try {
  code = await main()
} catch (error) {
  console.error(error.message)
} finally {
  children.forEach(child => child.kill())
}
process.exit(code)
