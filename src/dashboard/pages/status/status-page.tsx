import { isGood } from "../../../contract/status.ts";
import { useCall } from "../../data/api.ts";
import { capitalized } from "../../data/format.ts";
import { List, type Column } from "../../ui/table.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { State, Ago, Dated, Prose } from "../../ui/text.tsx";
import { Alerts } from "../alerts/alerts.tsx";
import { shownChecks, type Check } from "./shown-checks.ts";

export function StatusPage() {
  const status = useCall("status.get", {}, { pollMs: 15_000 });
  const alerts = useCall("alerts.list", {}, { pollMs: 15_000 });
  return (
    <Page title="Status" lead={<Lead checkedAt={status.data?.checked_at ?? null} />}>
      <Alerts />
      <Section title="Checks">
        <List
          // Rows shown before the alerts are known would jump once those of alerts are left out.
          of={alerts.isPending ? { ...status, data: undefined } : status}
          caption="Checks"
          rows={(data) => shownChecks(data.checks, alerts.data?.alerts ?? [])}
          columns={columns}
          keyOf={({ check, machine, subject }) => `${check} ${machine} ${subject}`}
        />
      </Section>
    </Page>
  );
}

function Lead({ checkedAt }: { readonly checkedAt: string | null }) {
  return (
    <>
      The platform's own checks, each repeated at least once a minute. Last run:{" "}
      {checkedAt === null ? "…" : <Ago at={checkedAt} />}
    </>
  );
}

const columns: readonly Column<Check>[] = [
  { head: "State", cell: ({ status }) => <State of={status} /> },
  {
    head: "Check",
    grow: true,
    cell: ({ check, subject, detail, hint, status }) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <span className="truncate font-medium">
          {capitalized(check)}{" "}
          {subject !== null && <span className="font-normal text-muted">{subject.replaceAll("_", " ")}</span>}
        </span>
        <span className="text-xs whitespace-normal text-faint">
          <Dated>{detail}</Dated>{" "}
          {!isGood(status) && hint !== null && (
            <span className="text-warn">
              <Prose>{hint}</Prose>
            </span>
          )}
        </span>
      </span>
    ),
  },
  { head: "Machine", wide: true, cell: ({ machine }) => <span className="text-muted">{machine ?? "all"}</span> },
  {
    head: "Since",
    end: true,
    wide: true,
    cell: ({ since }) => <Ago at={since} className="text-muted" />,
  },
];
