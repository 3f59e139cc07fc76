import { describe } from "node:test";
import { accessRows } from "./4-access.ts";
import { dataRows } from "./4-data.ts";
import { projectRows } from "./4-projects.ts";
import type { Subject } from "./subject.ts";

/** Part 4 of the specification: every row of its tables. */
export function endpoints(subject: () => Subject): void {
  describe("Projects, deployments, builds, scale, variables, domains, cron", () => projectRows(subject));
  describe("Data, backups, metrics, logs", () => dataRows(subject));
  describe("Access and organizations, approval flow", () => accessRows(subject));
}
