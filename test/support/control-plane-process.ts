import type { Workload } from "../../src/ports/runtime.ts";
import { makeGround } from "./runtime-ground.ts";

// A control plane for tests to kill: applies the workload (JSON) in the given folder, reports that, and waits to be killed.
const [root, workload] = process.argv.slice(2) as [string, string];
const ground = await makeGround({ root });
const runtime = await ground.open();
await runtime.start(JSON.parse(workload) as Workload, { ordinal: 0, attempt: 1 });
process.stdout.write("applied\n");
setInterval(() => {}, 60_000);
