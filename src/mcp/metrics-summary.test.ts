import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../contract/client.ts";
import { summarizeMetrics } from "./metrics-summary.ts";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 2, 0, minute)).toISOString();

function traffic(requests: number, errors: number) {
  return {
    requests,
    requests_per_second: requests / 300,
    answers: { "1xx": 0, "2xx": requests - errors, "3xx": 0, "4xx": 0, "5xx": errors },
    errors,
    error_rate: requests === 0 ? 0 : errors / requests,
    latency_ms: { mean: 123.456, p50: 100.123, p95: 987.654, p99: 1234.567 },
    bytes_in: 1_234_567_890,
    bytes_out: 9_876_543_210,
    page_load: {
      looks: 5,
      failed: 0,
      dns_ms: 1.234,
      connect_ms: 1.234,
      tls_ms: null,
      first_byte_ms: 12.345,
      total_ms: 23.456,
      slowest_ms: 34.567,
    },
  };
}

/** A day in buckets of five minutes, with requests in those that `busy` selects. */
function day(busy: (index: number) => boolean): Answer<"metrics.get"> {
  const buckets = Array.from({ length: 288 }, (_, index) => ({
    at: at(index * 5),
    ...(busy(index) ? traffic(3_000_000, 17) : traffic(0, 0)),
  }));
  const replicas = Array.from({ length: 4 }, (_, replica) => ({
    process: "web",
    replica,
    deployment: 1234,
    ready: true,
    restarts: 3,
    measured_at: at(0),
    memory_bytes: 123_456_789,
    processes: 12,
    buckets: buckets.map((bucket) => ({
      at: bucket.at,
      cpus: 0.1234,
      memory_bytes: 123_456_789,
      memory_bytes_most: 234_567_890,
      processes: 12,
      restarts: 0,
    })),
  }));
  const deployments = Array.from({ length: 40 }, (_, index) => ({
    id: `dep_${index}`,
    number: index,
    at: at(index),
    trigger: "push" as const,
    commit: "0123456789abcdef0123456789abcdef01234567",
  }));
  const head = { range: "24h" as const, from: at(0), to: at(1440), bucket_seconds: 300 };
  const more = { memory_limit_bytes: 512 * 1024 ** 2, crashes: [] };
  return { ...head, ...more, total: traffic(864_000_000, 4896), buckets, page: null, replicas, deployments };
}

test("a busy day with replicas and deployments takes at most 1,000 tokens at 4 characters a token", () => {
  const text = JSON.stringify(summarizeMetrics(day(() => true)));
  assert.ok(text.length <= 4000, `${text.length} characters`);
});

test("joined buckets lose no request and no error, and empty ones are left out", () => {
  const { traffic: shown } = summarizeMetrics(day((index) => index === 30 || index === 31));
  assert.equal(shown.seconds_a_row, 3600);
  assert.deepEqual(shown.rows, [[at(120), 6_000_000, 34, 987.654, 0]]);
});
