import type { Answer } from "../../../contract/client.ts";

export type Domain = Answer<"domains.list">["domains"][number];
