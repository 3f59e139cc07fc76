import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { count, plural, visible } from "../../data/format.ts";
import { Choice } from "../../ui/choice.tsx";
import { List, type Column } from "../../ui/table.tsx";
import { Section } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";
import { milliseconds } from "../metrics/charts-of.ts";

type Statement = Answer<"data.statements">["statements"][number];

const sorts = ["total", "mean", "most"] as const;
const refreshMs = 60_000;

/** Lists the statements that took the most time, without their values. */
export function Statements({ slug }: { readonly slug: string }) {
  const [sort, setSort] = useState<(typeof sorts)[number]>("total");
  const input = { params: { slug }, query: { sort } };
  const statements = useCall("data.statements", input, { pollMs: refreshMs, keep: true });
  const choice = (
    <Choice
      label="Order of the statements"
      options={sorts}
      value={sort}
      onChange={setSort}
      words={{ total: "Total time", mean: "Mean", most: "Longest" }}
    />
  );
  const isCollected = statements.data?.collected !== false;
  return (
    <Section
      title="Slow statements"
      lead="What the application's statements took since the server counts, without their values."
      actions={choice}
    >
      <List
        of={statements}
        caption="Slow statements"
        rows={(answer) => answer.statements}
        columns={columns}
        phone={(statement) => <Item of={statement} />}
        keyOf={({ query, calls, total_ms: ms }) => `${calls} ${ms} ${query}`}
        empty={
          <p className="text-sm text-muted">
            {isCollected
              ? "No statement was counted yet."
              : "This server does not count statements. A database on this machine does from its next start on, with PostgreSQL's contributed modules installed."}
          </p>
        }
      />
    </Section>
  );
}

function Item({ of: { query, calls, total_ms, mean_ms } }: { readonly of: Statement }) {
  return (
    <>
      <p className="line-clamp-3 wrap-anywhere">
        <Mono className="text-[12.5px]">{query.replace(/\s+/g, " ")}</Mono>
      </p>
      <p className="text-xs text-muted">
        {milliseconds(total_ms)} in {plural(calls, "call")}, {milliseconds(mean_ms)} each
      </p>
    </>
  );
}

const columns: readonly Column<Statement>[] = [
  {
    head: "Statement",
    grow: true,
    cell: ({ query }) => (
      <span title={visible(query)}>
        <Mono className="text-[12.5px]">{query.replace(/\s+/g, " ")}</Mono>
      </span>
    ),
  },
  { head: "Total", end: true, cell: ({ total_ms: ms }) => milliseconds(ms) },
  { head: "Calls", end: true, wide: true, cell: ({ calls }) => count(calls) },
  { head: "Mean", end: true, cell: ({ mean_ms: ms }) => milliseconds(ms) },
  { head: "Longest", end: true, wide: true, cell: ({ most_ms: ms }) => milliseconds(ms) },
];
