// Durable steps a second of DBOS Transact with PostgreSQL: workflows of 100 steps, in one run and in 50 at once.
// DATABASE_URL names an empty database of a server with its default settings. Argument: how often each form is run.
import { DBOS } from "@dbos-inc/dbos-sdk";

const steps = 100, rounds = Number(process.argv[2] ?? 10);
DBOS.setConfig({ name: "bench", systemDatabaseUrl: process.env.DATABASE_URL, logLevel: "error" });
const work = DBOS.registerWorkflow(async () => {
  for (let i = 0; i < steps; i++) await DBOS.runStep(async () => i, { name: `n${i}` });
}, { name: "linear" });
await DBOS.launch();
await work();
for (const runs of [1, 50]) {
  const begun = performance.now();
  for (let i = 0; i < rounds; i++) await Promise.all(Array.from({ length: runs }, () => work()));
  console.log(`runs=${runs} ${Math.round((rounds * runs * steps) / ((performance.now() - begun) / 1000))} nodes/s`);
}
await DBOS.shutdown();
