import { atTerminal } from "./at-terminal.ts";
import type { Workload } from "../../src/ports/runtime.ts";
import { makeGround } from "./runtime-ground.ts";

// A control plane for tests to kill: runs a command in a terminal, reports its first output, and waits to be killed.
const [root, workload, command] = process.argv.slice(2) as [string, string, string];
const ground = await makeGround({ root });
const runtime = await ground.open();
const person = atTerminal();
const limits = { timeoutMs: 3_600_000, silenceMs: 3_600_000, signal: new AbortController().signal };
void runtime.runOnce(JSON.parse(workload) as Workload, { ...person, ...limits, command });
await person.sees("begun");
process.stdout.write("begun\n");
setInterval(() => {}, 60_000);
