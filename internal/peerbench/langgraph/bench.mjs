// Durable nodes a second of LangGraph with its SQLite checkpointer: linear graphs of 100 nodes, in one run and in 50 at
// once. Arguments: how often each form is run, and SQLite's synchronous.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { Annotation, StateGraph, START, END } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

const nodes = 100, rounds = Number(process.argv[2] ?? 10), synchronous = process.argv[3] ?? "FULL";
const folder = mkdtempSync(join(tmpdir(), "langgraph-"));
const db = new Database(join(folder, "runs.db"));
const saver = new SqliteSaver(db);
saver.setup();
db.pragma(`synchronous = ${synchronous}`); // the driver is built with NORMAL as its default in WAL mode

const graph = new StateGraph(Annotation.Root({ n: Annotation() }));
for (let i = 0; i < nodes; i++) graph.addNode(`n${i}`, () => ({ n: i }));
graph.addEdge(START, "n0");
for (let i = 1; i < nodes; i++) graph.addEdge(`n${i - 1}`, `n${i}`);
graph.addEdge(`n${nodes - 1}`, END);
const app = graph.compile({ checkpointer: saver });

let id = 0;
const run = () => app.invoke({ n: -1 }, { configurable: { thread_id: `run-${++id}` }, recursionLimit: 2 * nodes, durability: "sync" });
await run();
for (const runs of [1, 50]) {
  const begun = performance.now();
  for (let i = 0; i < rounds; i++) await Promise.all(Array.from({ length: runs }, run));
  console.log(`runs=${runs} ${Math.round((rounds * runs * nodes) / ((performance.now() - begun) / 1000))} nodes/s`);
}
db.close();
rmSync(folder, { recursive: true });
