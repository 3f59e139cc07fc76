import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openCgroups } from "../../sandbox/cgroups.ts";
import { start } from "../../kit/exec.ts";
import { until } from "../../kit/until.ts";
import { loginOf, newDatabaseSpec } from "../../ports/postgres-host.suite.ts";
import { openControlGroups } from "./control-groups.ts";
import { findProcesses } from "./find-processes.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { limitMemory } from "./memory-limit.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";
import { guardMs } from "../../../test/support/eventually.ts";

const memoryBytes = 192 * 1024 * 1024;
const missingGroups = canWriteGroups() ? false : "control groups cannot be written here";

it("a process may take exactly the memory that it was given", { skip: !existsSync("/usr/bin/prlimit") }, async (t) => {
  const child = start({ file: "sleep", args: ["60"] });
  t.after(() => child.kill());
  await limitMemory({ pid: child.pid as number, uid: process.getuid?.() ?? 0 }, memoryBytes);
  const limits = readFileSync(`/proc/${child.pid}/limits`, "utf8");
  assert.match(limits, new RegExp(`^Max data size +${memoryBytes} +${memoryBytes} `, "m"));
});

describe("the limits of local instances", { skip: missingPart || missingGroups }, () => {
  const place = makeTestPlace();
  const groups = openControlGroups(place.dir, { memoryBytes, processes: 100, cpus: 2 });
  const host = createLocalPostgresHost({ ...place.options, groups });
  const spec = newDatabaseSpec();
  const folder = join(place.dir, spec.id);
  const processes = () =>
    findProcesses(readFileSync(join(folder, "process-mark"), "utf8"), statSync(join(folder, "data")).uid);

  after(async () => {
    await host.destroy(spec.id);
    groups.dismantle();
    place.remove();
  });

  it("hold for a server that was started without them, from the next ensure on", async () => {
    await createLocalPostgresHost(place.options).ensure(spec);
    assert.equal(inGroup(processes().postmaster?.pid), false);
    await host.ensure(spec);
    const { postmaster, others } = processes();
    for (const { pid } of [postmaster, ...others].filter((each) => each !== undefined)) assert.ok(inGroup(pid));
    await host.stop(spec.id);
  });

  it("hold for every process of a server from its first moment on", async () => {
    await host.ensure(spec);
    const { postmaster, others } = processes();
    assert.ok(postmaster && others.length > 0);
    for (const { pid } of [postmaster, ...others]) assert.ok(inGroup(pid));
    const score = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"));
    // A server's process sets its own score just after its start.
    const scored = async () => others.every(({ pid }) => score(pid) > score(postmaster.pid)) || undefined;
    assert.ok(await until(scored, { timeoutMs: guardMs }), "the kernel would spare a session");
  });

  it("refuse a statement that takes too much memory, and end no session", async () => {
    const endpoint = await host.ensure(spec);
    const { postmaster } = processes();
    const modest = await login(endpoint, loginOf(spec));
    const greedy = await login(endpoint, loginOf(spec));
    await greedy.query("set work_mem = '8GB'");
    const sort =
      "select count(*) from (select repeat('x', 900) || g as t from generate_series(1, 400000) g order by t) s";
    await assert.rejects(greedy.query(sort), { code: "53200" });
    for (const session of [greedy, modest]) {
      assert.deepEqual(await session.query("select 1 as n"), [{ n: 1 }]);
      await session.end();
    }
    assert.deepEqual(processes().postmaster, postmaster);
  });
});

function inGroup(pid: number | undefined): boolean {
  return /berth-databases-/.test(readFileSync(`/proc/${pid}/cgroup`, "utf8"));
}

function canWriteGroups(): boolean {
  const probe = openCgroups(`berth-test-${process.pid}`);
  probe.dismantle();
  return probe.parts.includes("memory_limit");
}
