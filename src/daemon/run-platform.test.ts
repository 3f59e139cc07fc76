import assert from "node:assert/strict";
import { test } from "node:test";
import { runOk } from "../kit/exec.ts";
import { nextSteps } from "./run-platform.ts";

test("the next steps work as printed in another terminal, whatever the ports, the data folder and its PATH are", async () => {
  const [path, login] = nextSteps({ listen: "0.0.0.0", httpPort: 4100, dataDir: "/data/it's here" });
  const words = `${login}`.replace("berth login", "printf '%s\\n'");
  const { stdout } = await runOk({ file: "sh", args: ["-c", `${path}\ncommand -v berth\n${words}`] });
  const [berth, ...given] = stdout.trim().split("\n");
  assert.match(berth ?? "", /\/bin\/berth$/);
  assert.deepEqual(given, ["http://127.0.0.1:4100", "--token-file", "/data/it's here/admin-token"]);
});
