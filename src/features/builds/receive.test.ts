import assert from "node:assert/strict";
import { test } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import { repositoriesDouble } from "../../../test/support/port-doubles.ts";
import { emptyDisk, sharedApi, testDiskLimits, testOrganization } from "../../../test/support/test-platform.ts";
import { createDiskLogStore } from "../../adapters/log-store-disk/disk-log-store.ts";
import { until } from "../../kit/until.ts";
import type { LogStore } from "../../ports/log-store.ts";
import type { Repositories } from "../../ports/repositories.ts";
import { receivePush } from "./receive.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");
const dir = testFolder("logs");

const repositories = repositoriesDouble({
  inspect: async () => ({ outcome: "fine", message: "Change", author: "", notes: ["Submodules are not fetched."] }),
});

const ref = (name: string) => ({ name: `refs/heads/${name}`, old: null, new: "a".repeat(40) });
const shown = [
  "       feature was stored but not deployed: only main deploys. To deploy it: git push <remote> feature:main",
  "       Submodules are not fetched.",
  " !     A newer push replaced this one.",
];

/** Begins a push of two branches. */
async function beginPush(given: { logStore: LogStore; repositories: Repositories; renewEveryMs?: number }) {
  const { db, wakeups } = api.platform;
  const project = await testProject(api.platform, org);
  const lines: string[] = [];
  const receiving = {
    db,
    wakeups,
    ...{ renewEveryMs: 3_600_000, ...given },
    builder: api.platform.ports.builder,
    dataDisk: emptyDisk,
    owner: "here",
    treeLimits: { entries: 1, bytes: 1 },
    diskLimits: testDiskLimits,
    vault: api.platform.vault,
    clock: api.platform.clock,
    ports: api.platform.ports,
    settings: api.platform.settings,
    appsDomain: "apps.test",
    appUrl: (hostname: string) => `http://${hostname}`,
    previews: { hours: 72, perProject: 5 },
  };
  const told = receivePush(
    receiving,
    {
      ...{ org_id: org.id, project_id: project.id, actor: "ada", copies_data: false, token_id: null },
      ...{ quarantine: null, isPlan: false, mayRewrite: true },
      refs: [ref("main"), ref("feature")],
      signal: new AbortController().signal,
    },
    (line) => void lines.push(line),
  );
  return { project, lines, told };
}

/** Runs a push of two branches that a newer push supersedes; resolves with the pusher's output and the build. */
async function supersededPush(logStore: LogStore, waitFor?: RegExp) {
  const { db } = api.platform;
  const renewing = waitFor === undefined ? {} : { renewEveryMs: 1 };
  const { project, lines, told } = await beginPush({ logStore, repositories, ...renewing });
  const queued = () =>
    db.selectFrom("build").select("id").where("project_id", "=", project.id).where("status", "=", "queued").execute();
  assert.ok(await until(async () => ((await queued()).length === 1 ? true : undefined), { timeoutMs: guardMs }));
  if (waitFor !== undefined)
    assert.ok(await until(async () => lines.find((line) => waitFor.test(line)), { timeoutMs: guardMs }));
  await db.updateTable("build").set({ status: "superseded" }).where("project_id", "=", project.id).execute();
  const { accepted, build } = await told;
  return { accepted, id: build?.id ?? "", lines };
}

test("what the pusher sees is the stored log, with the notes on his push and that a newer one took its place", async () => {
  const logStore = createDiskLogStore({ dir });
  const { accepted, id, lines } = await supersededPush(logStore);
  const { text } = await logStore.readBuild(id, 0, 100_000);
  assert.deepEqual([accepted, text], [false, `${shown.join("\n")}\n`]);
  assert.deepEqual(lines, shown);
});

test("a pusher who waits for other builds sees that the push goes on, and the stored log has the same lines", async () => {
  const logStore = createDiskLogStore({ dir });
  const { id, lines } = await supersededPush(logStore, /^ {7}still waiting after \d+ s: other builds are running$/);
  assert.equal((await logStore.readBuild(id, 0, 100_000)).text, `${lines.join("\n")}\n`);
});

test("the pusher is told also what could not be stored", async () => {
  const appendBuild = () => Promise.reject(new Error("ENOSPC"));
  const { accepted, lines } = await supersededPush({ ...createDiskLogStore({ dir }), appendBuild });
  assert.deepEqual([accepted, lines], [false, shown]);
});

test("a commit that cannot be built is refused with why and what to do, and nothing is queued", async () => {
  const inspection = {
    outcome: "refused",
    code: "source_too_large",
    summary: "It is large.",
    hint: "Push less.",
  } as const;
  const { told, lines } = await beginPush({
    logStore: createDiskLogStore({ dir }),
    repositories: repositoriesDouble({ inspect: async () => inspection }),
  });
  assert.deepEqual(await told, { accepted: false, build: null });
  assert.deepEqual(lines, [" !     It is large.", " !     Push less."]);
});
