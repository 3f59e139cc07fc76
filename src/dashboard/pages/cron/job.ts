import type { Answer } from "../../../contract/client.ts";

export type Job = Answer<"cron.list">["jobs"][number];
