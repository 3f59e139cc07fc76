// An application in its own process that records each run's call and its time, and prints them when its input ends.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** What the application prints: each call's run and time of arrival. */
export type CronHits = readonly (readonly [run: string, atMs: number])[];

if (import.meta.main) {
  const hits: (readonly [string, number])[] = [];
  const server = createServer((request, response) => {
    hits.push([String(request.headers["x-cron-execution-id"] ?? ""), Date.now()]);
    response.end("done");
  });
  server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
  });
  process.stdin.resume().once("end", () => process.stdout.write(`${JSON.stringify(hits)}\n`, () => process.exit(0)));
}
