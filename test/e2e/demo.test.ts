import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { run, start } from "../../src/kit/exec.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { withoutPebble } from "../support/pebble.ts";
import { layGround } from "./platform.ts";
import { killProcesses, processesNaming } from "./processes.ts";
import { ask } from "./traffic.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

const checkout = fileURLToPath(new URL("../../", import.meta.url));

test(
  "the commands that the HTTPS demo prints attach a name and request it over HTTPS with a verified certificate",
  { skip: withoutPebble, timeout: 600_000 },
  async (t) => {
    const settings = { BERTH_EDGE_TLS_PORT: `${await freePort()}`, BERTH_EXAMPLE: "1" };
    const { dataDir, env, ports } = await layGround(settings);
    const demo = start({ file: process.execPath, args: ["tools/demo/main.ts"] }, { env, cwd: checkout });
    const closed = once(demo, "close");
    let output = "";
    for (const stream of [demo.stdout, demo.stderr])
      stream.on("data", (chunk: Buffer) => void (output += chunk.toString()));
    t.after(async () => {
      demo.kill("SIGINT");
      await closed;
      killProcesses(processesNaming(dataDir));
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    });
    const isLive = async () => demo.exitCode !== null || (await ask(ports.edge, "example", "/")).status === 200;
    await eventually(isLive, "the example is live");
    const commands = Array.from(output.matchAll(/^ {2}((?:export BERTH_|bin\/berth |curl ).*)$/gm), ([, line]) => line);
    assert.equal(commands.length, 3, output);
    const shell = { file: "/bin/sh", args: ["-eu"] };
    const { exitCode, stdout, stderr } = await run(shell, {
      ...{ stdin: `${commands.join("\n")}\n`, cwd: checkout, timeoutMs: guardMs },
      env: { PATH: env["PATH"] ?? "", HOME: dataDir },
    });
    assert.equal(exitCode, 0, stdout + stderr);
    assert.match(stdout, /^www\.shop\.test is served over HTTPS\.$[\s\S]*Hello from Berth/m);
  },
);
