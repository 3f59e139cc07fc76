import type { Answer } from "../../../contract/client.ts";

export type TablePageRows = Answer<"data.rows">;

export type Row = Readonly<Record<string, unknown>>;

export interface TableSearch {
  readonly sort?: string;
  readonly dir?: "desc";
  readonly q?: string;
  readonly offset?: number;
}
