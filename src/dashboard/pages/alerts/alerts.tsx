import { getRouteApi } from "@tanstack/react-router";
import type { Answer } from "../../../contract/client.ts";
import { usePages } from "../../data/api.ts";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section } from "../../ui/page.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { State, Status, Dated, Prose } from "../../ui/text.tsx";

type Alert = Answer<"alerts.list">["alerts"][number];

export interface AlertsSearch {
  /** Whether to include resolved alerts. */
  readonly all?: boolean;
}

const route = getRouteApi("/operator/status");
// Alerts belong to no organization, so its stream of changes does not report them.
const pollMs = 15_000;

export function Alerts() {
  const { all = false } = route.useSearch();
  const navigate = route.useNavigate();
  const show = (next: boolean) =>
    void navigate({ search: next ? { all: true } : {}, replace: true, resetScroll: false });
  const alerts = usePages("alerts.list", { query: { all } }, () => pollMs);
  return (
    <Section
      title="Alerts"
      lead="A check that keeps failing opens one."
      actions={<Checkbox label="Resolved ones too" checked={all} onChange={(event) => show(event.target.checked)} />}
    >
      <List
        of={alerts}
        caption="Alerts"
        rows={({ pages }) => pages.flatMap((page) => page.alerts)}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<Status tone="ok">{all ? "No alert was opened yet" : "No open alerts"}</Status>}
      />
    </Section>
  );
}

const columns: readonly Column<Alert>[] = [
  {
    head: "State",
    cell: ({ severity, resolved_at: at }) =>
      at === null ? <State of={severity} /> : <Status tone="off">Resolved</Status>,
  },
  {
    head: "Alert",
    grow: true,
    cell: ({ summary, hint, subject }) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <span className="whitespace-normal">
          <Dated>{summary}</Dated> {subject !== null && <span className="text-muted">{subject}</span>}
        </span>
        {hint !== null && (
          <span className="text-xs whitespace-normal text-faint">
            <Prose>{hint}</Prose>
          </span>
        )}
      </span>
    ),
  },
  timeColumn("Opened", (row) => row.opened_at),
];
