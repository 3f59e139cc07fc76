import type { Workload } from "../../ports/runtime.ts";
import { makeGround } from "./test-ground.ts";

// A control plane to be killed: applies the workload given as JSON in the folder given, says so, and waits for its death.
const [root, workload] = process.argv.slice(2) as [string, string];
const ground = await makeGround({ root });
const runtime = await ground.open();
await runtime.start(JSON.parse(workload) as Workload, { ordinal: 0, attempt: 1 });
process.stdout.write("applied\n");
setInterval(() => {}, 60_000);
