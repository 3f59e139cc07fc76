import assert from "node:assert/strict";
import { after, test } from "node:test";
import { addTraffic } from "../src/features/metrics/metrics.ts";
import { latencyBucketsMs } from "../src/ports/edge.ts";
import { cliUser } from "./support/cli.ts";
import { testThings } from "./support/fixtures.ts";
import { sharedApi, testOrganization } from "./support/test-platform.ts";

const api = await sharedApi();

const org = await testOrganization(api.database.db, "home");
const { project } = await testThings(api.platform, org);
const slug = project.slug;
const user = await cliUser({ url: api.baseUrl, token: org.owner });
const latency_buckets = [...latencyBucketsMs, Infinity].map((bound) => (bound >= 50 ? 40 : 0));
const bytes = { bytes_in: 0, bytes_out: 4096 };
const counted = { requests: 40, by_class: { "2": 39, "5": 1 }, ...bytes, latency_buckets, latency_sum_ms: 1600 };
await addTraffic(api.database.db, [{ counter: "edge-1", project_id: project.id, ...counted }], new Date());
await api.call("PUT", `/v1/projects/${slug}/env/SHADE`, { token: org.owner, body: { value: "do-not-show-me" } });
after(() => user[Symbol.asyncDispose]());

async function outputOf(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await user.berth([...args, "-p", slug]);
  assert.equal(exitCode, 0, stderr);
  return stdout;
}

test("berth metrics prints a summary, or the API's document as JSON", async () => {
  const words = await outputOf("metrics");
  assert.match(words, /requests +40 /);
  assert.match(words, /errors +1 \(2\.5 %\)/);
  assert.match(words, /p50 \d+ ms/);
  const document = JSON.parse(await outputOf("metrics", "--range", "24h", "--json")) as { buckets: unknown[] };
  // 96 quarters of an hour, and the current one.
  assert.equal(document.buckets.length, 97);
  const wrong = await user.berth(["metrics", "--range", "2h", "-p", slug]);
  assert.equal(wrong.exitCode, 2);
});

test("timeline and activity show actors and actions, but no values", async () => {
  for (const command of ["timeline", "activity"]) {
    const words = await outputOf(command);
    assert.match(words, /Variable SHADE set/);
    assert.ok(!words.includes("do-not-show-me"));
  }
  const page = JSON.parse(await outputOf("timeline", "-n", "1", "--kind", "env", "--json")) as { timeline: unknown[] };
  assert.equal(page.timeline.length, 1);
  const wrong = await user.berth(["timeline", "--kind", "nonsense", "-p", slug]);
  assert.equal(wrong.exitCode, 2);
});

test("the overview shows one line for each project", async () => {
  const words = await outputOf("overview");
  assert.match(words, new RegExp(`${slug} +down +- +0/0 +40 +1 +ready`));
});
