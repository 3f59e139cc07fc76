import { atTerminal } from "../../../test/support/at-terminal.ts";
import type { Workload } from "../../ports/runtime.ts";
import { makeGround } from "./test-ground.ts";

// A control plane to be killed: runs a command in a terminal, says so once it shows something, and waits for its death.
const [root, workload, command] = process.argv.slice(2) as [string, string, string];
const ground = await makeGround({ root });
const runtime = await ground.open();
const person = atTerminal();
const limits = { timeoutMs: 3_600_000, silenceMs: 3_600_000, signal: new AbortController().signal };
void runtime.runOnce(JSON.parse(workload) as Workload, { ...person, ...limits, command });
await person.sees("begun");
process.stdout.write("begun\n");
setInterval(() => {}, 60_000);
