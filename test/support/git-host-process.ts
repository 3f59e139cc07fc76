// Serves git from a folder in a separate process that tests can kill in the middle of a push.
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
