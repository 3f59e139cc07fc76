// Drawn with other journey files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { plantedValue, startSubject, type Answer, type Subject } from "../conformance/subject.ts";
import { runsAll } from "../support/draw-cases.ts";
import { requests, type FuzzedRequest } from "./requests.ts";

// A fixed count, because on a busy machine a fixed time would allow too few requests to reach existing resources.
const rounds = Number(process.env["BERTH_TEST_FUZZ_ROUNDS"] ?? (runsAll ? "80" : "16"));
const requestsInRound = 50;
const seed = Number(process.env["BERTH_TEST_SEED"] ?? randomInt(2 ** 31));
const atOnce = 4;

// These operations start processes or copy a database.
const heavy = [
  "backups.create",
  "backups.promote",
  "backups.restore",
  "backups.verify",
  "builds.plan",
  "builds.plan-upload",
  "builds.upload",
  "database.create",
  "deployments.create",
  "deployments.rollback",
  "deployments.scale",
  "env.set",
  "env.delete",
  "orgs.scale",
  "processes.restart",
  "processes.set",
  "runs.create",
];
// These operations would make all later requests fail.
const fatal = ["orgs.disable"];
// Error codes with a status of 500 or more that are correct responses to some requests.
const expected = ["previous_unhealthy", "restart_failed", "query_timeout"];
const passing = "The database is still being created. Try again in a moment.";

let subject: Subject;
before(async () => {
  subject = await startSubject();
});
after(() => subject?.destroy());

/** Names of existing resources, so that requests of the fuzzer reach them. */
async function pool(): Promise<Record<string, readonly string[]>> {
  await subject.expect(201, "POST", "/v1/projects", { body: { slug: "empty", name: "Empty" } });
  await subject.expect(201, "PUT", "/v1/projects/shop/cron/nightly", {
    body: { schedule: "0 3 1 1 *", path: "/cron" },
  });
  const backup = await subject.expect(201, "POST", "/v1/projects/shop/backups");
  const asked = await subject.call("DELETE", "/v1/projects/empty", { as: "careful" });
  const [build] = (await subject.expect(200, "GET", "/v1/projects/shop/builds")).body.builds;
  return {
    slug: ["shop", "empty", "missing"],
    id: [build.id, backup.body.id, asked.body.approval.id, "tok_missing", "key_missing"],
    key: ["PLANTED", "NEW", "PORT", "1BAD"],
    name: ["nightly", "other"],
    hostname: ["www.late.test", "www.fuzz.test", "192.0.2.1"],
    schema: ["public", "pg_catalog", "missing"],
    table: ["item", "tag", "cheap", "missing"],
    database: ["restored_missing", "postgres"],
  };
}

test("no request causes a server error, an undeclared status or shape, or a leaked secret", async (t) => {
  const document = (await subject.expect(200, "GET", "/v1/openapi.json")).body;
  for (const [template, methods] of Object.entries(
    document.paths as Record<string, Record<string, { operationId: string }>>,
  ))
    if (Object.values(methods).some(({ operationId }) => fatal.includes(operationId))) delete document.paths[template];
  const callers = [
    "operator",
    "owner",
    "owner",
    "member",
    "limited",
    "careful",
    "stranger",
    "nobody",
    "berth_o_garbage",
  ];
  const arbitrary = requests({ document, callers, pool: await pool(), heavy });
  const found = new Map<string, string>();
  const statuses = new Map<string, number>();
  let round = 0;
  const work = async () => {
    while (round < rounds) {
      round += 1;
      for (const one of fc.sample(arbitrary, { seed: seed + round, numRuns: requestsInRound })) {
        const fault = await faultOf(one, statuses);
        if (fault !== undefined && !found.has(fault.kind)) found.set(fault.kind, fault.report);
      }
      await revive();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const total = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  const counted = [...statuses].map((pair) => pair.join("×")).join(" ");
  t.diagnostic(`${total} requests with seed ${seed}: ${counted}`);
  assert.equal(found.size, 0, `seed ${seed}\n${[...found.values()].join("\n")}`);
  assert.ok(
    (statuses.get("200") ?? 0) > 50 && (statuses.get("404") ?? 0) > 50,
    `too few requests reached existing or missing resources: ${counted}`,
  );
});

test("the platform's output contains no secret", () => {
  const output = subject.platform.output();
  const secrets = [plantedValue, ...Object.values(subject.tokens)];
  assert.deepEqual(
    secrets.filter((secret) => output.includes(secret)),
    [],
  );
});

/** Undeletes projects that the fuzzer may have deleted, so that later requests reach them. */
async function revive(): Promise<void> {
  for (const slug of ["shop", "empty"]) await subject.call("POST", `/v1/projects/${slug}/undelete`, { as: "operator" });
}

async function faultOf(
  one: FuzzedRequest,
  statuses: Map<string, number>,
): Promise<{ kind: string; report: string } | undefined> {
  const { method, path, as, body, headers, operation } = one;
  const describeFault = (why: string) => ({
    kind: `${operation}: ${why.replaceAll(/[0-9"'].*/gs, "")}`,
    report: `${JSON.stringify(one)}\n  ${why}`,
  });
  let answer: Answer;
  try {
    answer = await subject.call(method, path, { as, headers, ...(body === undefined ? {} : { body }) });
  } catch (error) {
    return describeFault(
      `${(error as Error).message} ${((error as Error).cause as Error | undefined)?.message ?? ""}`.trim(),
    );
  }
  statuses.set(String(answer.status), (statuses.get(String(answer.status)) ?? 0) + 1);
  const isExpected = expected.includes(answer.body?.code) || answer.body?.error === passing;
  return answer.status < 500 || isExpected ? undefined : describeFault(`answered ${answer.text}`);
}
