import assert from "node:assert/strict";
import { test } from "node:test";
import { countersOfProject, readUsage } from "./usage.ts";

const entry = (counters: number, counted: Readonly<Record<number, number>>) => {
  const values = Array.from({ length: counters }, (_, i) => `gpc${i}=${counted[i] ?? 0}`).join(" ");
  return `0x7f: key=prj_1 use=0 exp=0 shard=0 ${values} http_req_cnt=7 bytes_in_cnt=70 bytes_out_cnt=700\n`;
};

test("responses are counted by class, and by latency whatever their class", () => {
  // Two successes within 1 ms and one within 5 ms; two redirects, a client error and a server error, which took longer than the last bound.
  const counted = { 0: 2, 2: 1, 15: 2, 17: 1, 29: 1, 30: 2, 31: 1, 32: 1 };
  const [usage] = readUsage("worker", `# table: usage\n${entry(countersOfProject, counted)}`);
  assert.deepEqual(usage?.by_class, { "2": 3, "3": 2, "4": 1, "5": 1 });
  assert.deepEqual(usage?.latency_buckets, [4, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7]);
  assert.deepEqual([usage?.requests, usage?.bytes_in, usage?.bytes_out], [7, 70, 700]);
});

test("counters of a worker that an earlier version configured are not read as these", () => {
  assert.deepEqual(readUsage("worker", entry(20, { 0: 7, 16: 7 })), []);
});
