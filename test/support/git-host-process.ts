// A process of its own that serves git in a folder, for tests that kill it in the middle of a push.
import { ScriptedGate, startGitHost } from "./git-servers.ts";

const [dir = ""] = process.argv.slice(2);
const gate = new ScriptedGate();
gate.receive = async (_push, onLine) => {
  onLine("-----> Deciding");
  await new Promise(() => {});
  return { accepted: true };
};
const host = await startGitHost(gate, {}, dir);
process.stdout.write(`${host.httpUrl()}\n`);
