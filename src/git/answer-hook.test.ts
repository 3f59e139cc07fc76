import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { silentLog } from "../kit/log.ts";
import { answerHook, parseRefUpdates, refuseRefs } from "./answer-hook.ts";
import type { GitCaller, GitGate, GitProject, PushRequest } from "./gate.ts";
import { Push } from "./push.ts";

const project: GitProject = { id: "prj_1", organization_id: "org_1", slug: "demo", deploy_branch: "main" };
const caller = { kind: "key", id: "key_1" } as GitCaller;

/** Sends the request of a hook with these object folders to a gate that accepts every push. */
async function ask(path: string, objects: string, alternates: string) {
  const received: PushRequest[] = [];
  const receive = async (push: PushRequest) => (received.push(push), { accepted: true });
  const [question, hook] = duplexPair();
  const [lines] = duplexPair();
  const push = new Push(project, caller, "/repositories/prj_1");
  hook.write(`${path}\n${objects}\n${alternates}\ndeploy\n${"0".repeat(40)} ${"1".repeat(40)} refs/heads/main\n.\n`);
  await answerHook({ gate: { receive } as unknown as GitGate, log: silentLog }, push, { question, lines });
  return { received, answer: await text(hook).catch(() => "") };
}

test("a push whose objects lie in its own repository reaches the gate", async () => {
  const { received, answer } = await ask("objects/incoming-1", "/repositories/prj_1/objects/incoming-1", "objects");
  assert.equal(answer, "accepted\n");
  assert.equal(received[0]?.quarantine?.GIT_QUARANTINE_PATH, "/repositories/prj_1/objects/incoming-1");
});

test("a push that names objects of another repository is refused, and never reaches the gate", async () => {
  for (const foreign of ["/repositories/prj_2/objects", "../prj_2/objects", "/repositories/prj_1"])
    for (const index of [0, 1, 2]) {
      const folders = ["objects/incoming-1", "objects/incoming-1", "objects"].with(index, foreign);
      const { received, answer } = await ask(...(folders as [string, string, string]));
      assert.deepEqual([received, answer], [[], ""], folders.join());
    }
});

const [zero, one] = ["0".repeat(40), `0${"1".repeat(39)}`];
const refuse = (name: string, to: string | null = one) => refuseRefs(project, [{ name, old: one, new: to }]);

test("git's lines become updates, zeros become null", () => {
  const text = `${zero} ${one} refs/heads/main\n${one} ${zero} refs/tags/v1\n`;
  assert.deepEqual(parseRefUpdates(text), [
    { name: "refs/heads/main", old: null, new: one },
    { name: "refs/tags/v1", old: one, new: null },
  ]);
});

test("anything else than git's lines is no push", () => {
  for (const text of ["x", `${one} ${one} HEAD\n`, `${one} refs/heads/main\n`])
    assert.equal(parseRefUpdates(text), null, text);
});

test("branches and tags pass; other refs, no refs and too many refs do not", () => {
  assert.equal(refuse("refs/heads/topic"), null);
  assert.equal(refuse("refs/tags/v1"), null);
  assert.match(refuse("refs/notes/commits") ?? "", /Only branches and tags/);
  assert.match(refuse("refs/heads/") ?? "", /Only branches and tags/);
  assert.match(refuseRefs(project, []) ?? "", /no branch/);
  const many = Array.from({ length: 1001 }, (_, i) => ({ name: `refs/tags/v${i}`, old: null, new: one }));
  assert.match(refuseRefs(project, many) ?? "", /more than 1000/);
});

test("the deploy branch cannot be deleted, another branch can", () => {
  assert.match(refuse("refs/heads/main", null) ?? "", /cannot be deleted/);
  assert.equal(refuse("refs/heads/topic", null), null);
});
