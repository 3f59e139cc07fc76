import type { Answer } from "../../../contract/client.ts";

export type Webhook = Answer<"webhooks.list">["webhooks"][number];
