// Drives the MCP server with clients of others: the TypeScript SDKs of both lines take a ticket through the lighthouse example, over
// standard input and output and over HTTP; the Inspector's command line lists and calls; the conformance suites run over HTTP. What these
// may fail at is in exceptions.json, with the reason; an exception that nothing needs is a failure, too. Called by `make clients`:
//
//	node check.mjs SERVER LIGHTHOUSE.workflow.json
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as v1 from '@modelcontextprotocol/sdk/client/index.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import * as v1stdio from '@modelcontextprotocol/sdk/client/stdio.js'
import * as v1http from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as v2 from '@modelcontextprotocol/client'
import * as v2stdio from '@modelcontextprotocol/client/stdio'

const [server, example] = process.argv.slice(2)
const here = dirname(fileURLToPath(import.meta.url))
const home = mkdtempSync(join(tmpdir(), 'clientcheck-'))
const env = { PATH: process.env.PATH, HOME: home, USERPROFILE: home, SystemRoot: process.env.SystemRoot ?? '' }
const definition = JSON.parse(readFileSync(example, 'utf8'))
const wait = id => ({ id, type: 'wait', config: { kind: 'duration', duration_ms: 500 } })
const waits = {
  document: { schema: definition.document.schema, name: 'waits', version: '1.0.0' }, state_schema: { type: 'object' },
  nodes: [{ id: 'begin', type: 'start' }, wait('one'), wait('two'), { id: 'finish', type: 'end' }],
  edges: [['__start__', 'begin'], ['begin', 'one'], ['one', 'two'], ['two', 'finish']].map(([source, target]) => ({ source, target })),
}
const token = 'a-token-for-the-check-of-clients'

// The server that listens, with a token.
writeFileSync(join(home, 'token'), token, { mode: 0o600 })
async function listen(...args) {
  const child = spawn(server, ['--transport', 'http', '--listen', '127.0.0.1:0', ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  for await (const line of createInterface(child.stderr)) {
    const url = line.match(/http:\S+/)
    if (url) {
      child.stderr.resume()
      return { url: new URL(url[0]), stop: () => (child.kill(), once(child, 'exit')) }
    }
  }
  throw new Error('the server has ended')
}

let failed = 0
async function check(name, run) {
  try {
    console.log(`ok    ${name}: ${await run()}`)
  } catch (error) {
    failed++
    console.log(`FAIL  ${name}: ${error.stack ?? error}`)
  }
}

// drive follows what the answers ask for, from a start to the end; what the person is to answer the client puts to them, if it can. Then it hears of the progress of a call that waits, is refused once,
// and reads a resource.
async function drive(client, transport, id, asks) {
  let asked = 0
  if (asks) {
    const answer = () => (asked++, { action: 'accept', content: { intent: 'billing' } })
    client.setRequestHandler(client instanceof v1.Client ? ElicitRequestSchema : 'elicitation/create', answer)
  }
  await client.connect(transport)
  const { tools } = await client.listTools()
  if (tools.length < 10) throw new Error(`${tools.length} tools`)
  const results = { classify: { intent: 'billing', confidence: 0.4, summary: 'charged twice' }, open_ticket: { ticket: { id: 'SUP-1' } } }
  let call = { name: 'workflow_start', arguments: { execution_id: id, definition, input: { ticket_text: 'I was charged twice' } } }
  const way = []
  for (;;) {
    const answer = await client.callTool(call)
    if (answer.isError) throw new Error(answer.content[0].text)
    const { status, node_id: node, next, result } = answer.structuredContent
    way.push([status, node].filter(Boolean).join(' '))
    if (status === 'completed') {
      if (result.ticket_id !== 'SUP-1') throw new Error(JSON.stringify(result))
      break
    }
    call = { name: next.tool, arguments: { ...next.arguments } }
    if (status === 'awaiting_activity') call.arguments.outcome = { ok: true, result: results[node] }
    if (status === 'interrupted') call.arguments.resume_payload = { intent: 'billing' }
    if (way.length > 20) throw new Error(way.join(', '))
  }
  let heard = 0
  const options = { onprogress: () => heard++ }
  const nap = { name: 'workflow_start', arguments: { definition: waits, wait_ms: 20_000 } }
  const slept = await (client instanceof v1.Client ? client.callTool(nap, undefined, options) : client.callTool(nap, options))
  if (slept.structuredContent.status !== 'completed' || heard === 0) throw new Error(`heard of progress ${heard} times: ${slept.content[0].text}`)
  const refused = await client.callTool({ name: 'workflow_status', arguments: { execution_id: 'nobody' } })
  if (!refused.isError || refused.structuredContent.error.code !== 'EXECUTION_NOT_FOUND') throw new Error(JSON.stringify(refused))
  const { contents } = await client.readResource({ uri: `awp://runs/${id}/result/ticket_id` })
  if (JSON.parse(contents[0].text) !== 'SUP-1') throw new Error(contents[0].text)
  await client.close()
  const want = ['awaiting_activity classify', ...(asks ? [] : ['interrupted ask_person']), 'awaiting_activity open_ticket', 'completed'].join(', ')
  if (way.join(', ') !== want || asks && asked !== 1) throw new Error(`${way.join(', ')}; the person was asked ${asked} times`)
  return want
}

// run runs a command to its end, and returns what it prints.
async function run(command, ...args) {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = '', err = ''
  child.stdout.on('data', text => (out += text))
  child.stderr.on('data', text => (err += text))
  const [status] = await once(child, 'close')
  if (status !== 0) throw new Error(`status ${status}\n${out}\n${err}`)
  return { out, err }
}

const named = name => ({ name, version: '1' })
const clients = {
  'TypeScript SDK 1': options => new v1.Client(named('ts-1'), options),
  'TypeScript SDK 2, as by default': options => new v2.Client(named('ts-2'), options),
  'TypeScript SDK 2, auto': options => new v2.Client(named('ts-2'), { ...options, versionNegotiation: { mode: 'auto' } }),
  'TypeScript SDK 2, 2026-07-28': options => new v2.Client(named('ts-2'), { ...options, versionNegotiation: { mode: { pin: '2026-07-28' } } }),
}

const http = await listen('--db', join(home, 'runs.db'), '--token-file', join(home, 'token'))
let n = 0
for (const [name, make] of Object.entries(clients)) {
  const kit = name.startsWith('TypeScript SDK 1') ? { ...v1stdio, ...v1http } : { ...v2, ...v2stdio }
  for (const asks of [false, true]) {
    const client = () => make(asks ? { capabilities: { elicitation: {} } } : {})
    await check(`${name}, stdio${asks ? ', asks the person' : ''}`, () => {
      const transport = new kit.StdioClientTransport({ command: server, args: ['--db', join(home, 'runs.db')], env, stderr: 'ignore' })
      return drive(client(), transport, `run-${++n}`, asks)
    })
    await check(`${name}, http${asks ? ', asks the person' : ''}`, () => {
      const transport = new kit.StreamableHTTPClientTransport(http.url, { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
      return drive(client(), transport, `run-${++n}`, asks)
    })
  }
  await check(`${name}, http without the token`, async () => {
    try {
      await make().connect(new kit.StreamableHTTPClientTransport(http.url))
    } catch (error) {
      if (/401|nauthorized|bearer token/.test(`${error.name} ${error.message}`)) return 'refused'
      throw error
    }
    throw new Error('was let in')
  })
}

const inspector = join(here, 'node_modules', '@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js')
const ways = {
  stdio: [server, '--db', join(home, 'runs.db')],
  http: ['--transport', 'http', '--server-url', http.url.href, '--header', `Authorization: Bearer ${token}`],
}
for (const [way, target] of Object.entries(ways)) {
  for (const method of [['tools/list', '--strict'], ['resources/list'], ['resources/templates/list'], ['resources/read', '--uri', 'awp://guide'],
    ['tools/call', '--tool-name', 'workflow_status', '--tool-arg', 'execution_id=run-1']]) {
    await check(`Inspector, ${way}, ${method.join(' ')}`, async () => {
      const { out, err } = await run(process.execPath, inspector, '--cli', ...target, '--method', ...method)
      return `${Object.keys(JSON.parse(out)).join(', ')}; ${err.split('Warning: ').length - 1} warnings`
    })
  }
}
await http.stop()

const exceptions = JSON.parse(readFileSync(join(here, 'exceptions.json'), 'utf8')).map(e => ({ ...e, count: 0 }))
for (const suite of ['@modelcontextprotocol/conformance', 'conformance-next']) {
  const folder = join(here, 'node_modules', suite)
  const open = await listen('--store', 'memory')
  await check(`conformance ${JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version}`, async () => {
    const results = join(home, suite.replace('/', '-'))
    await run(process.execPath, join(folder, 'dist', 'index.js'), 'server', '--url', open.url.href, '--suite', 'all', '-o', results).catch(() => {}) // its status counts exceptions
    const checks = globSync(join(results, '*', 'checks.json')).flatMap(file => JSON.parse(readFileSync(file, 'utf8')))
    const failures = checks.filter(c => c.status === 'FAILURE')
    const unexpected = failures.filter(c => {
      const e = exceptions.find(e => new RegExp(e.check).test(c.id) && new RegExp(e.message).test(c.errorMessage))
      if (e) e.count++
      return !e
    })
    if (unexpected.length > 0) throw new Error(unexpected.map(c => `${c.id}: ${c.errorMessage}`).join('\n'))
    const passed = checks.filter(c => c.status === 'SUCCESS').length
    if (passed < 9) throw new Error(`only ${passed} checks passed`)
    const warnings = checks.filter(c => c.status === 'WARNING').map(c => c.id)
    return `${passed} passed, ${failures.length} exceptions, warnings: ${warnings.join(', ') || 'none'}`
  })
  await open.stop()
}
for (const e of exceptions) {
  if (e.count > 0) console.log(`      ${e.count} exceptions because ${e.because}`)
  else await check(`exception because ${e.because}`, () => { throw new Error('nothing needs it: remove it') })
}

rmSync(home, { recursive: true, force: true })
console.log(failed ? `${failed} failed` : 'all passed')
process.exit(failed ? 1 : 0)
