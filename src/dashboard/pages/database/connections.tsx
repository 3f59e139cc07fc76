import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { plural, visible } from "../../data/format.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section } from "../../ui/page.tsx";
import { Status, Tag, Mono, Plain, type Tone } from "../../ui/text.tsx";

type Connection = Answer<"data.connections">["connections"][number];

const refreshMs = 10_000;

export function Connections({ slug }: { readonly slug: string }) {
  const connections = useCall("data.connections", { params: { slug }, query: {} }, { pollMs: refreshMs });
  const { data } = connections;
  const lead =
    data === undefined
      ? undefined
      : `${plural(data.connections.filter(({ kind }) => kind === "application").length, "connection")} of the application; it may have ${data.limit}.`;
  return (
    <Section title="Connections" lead={lead}>
      <List
        of={connections}
        caption="Connections"
        rows={(answer) => answer.connections}
        columns={columnsFor(slug)}
        keyOf={({ pid }) => String(pid)}
        empty={<p className="text-sm text-muted">Nothing is connected.</p>}
      />
    </Section>
  );
}

function EndConnection({ slug, pid }: { readonly slug: string; readonly pid: number }) {
  return (
    <ActionDialog
      row="data.end_connection"
      look="danger"
      title={`End connection ${pid}`}
      submit="End it"
      input={() => ({ params: { slug, pid: String(pid) } })}
    >
      <p className="text-sm text-muted">
        What it has not committed is rolled back. The application may connect again at once.
      </p>
    </ActionDialog>
  );
}

function columnsFor(slug: string): readonly Column<Connection>[] {
  return [
    { head: "State", cell: (connection) => <Doing of={connection} /> },
    {
      head: "Application",
      wide: true,
      cell: ({ application, kind }) => (
        <span className="flex items-center gap-2">
          {application !== "" && <Plain>{application}</Plain>}
          {kind !== "application" && <Tag>{kind}</Tag>}
        </span>
      ),
    },
    {
      head: "Last statement",
      grow: true,
      cell: ({ query, kind }) => (
        <>
          {kind !== "application" && (
            <span className="mr-2 sm:hidden">
              <Tag>{kind}</Tag>
            </span>
          )}
          {query !== null && <Mono className="text-[12.5px]">{query.replace(/\s+/g, " ")}</Mono>}
        </>
      ),
    },
    timeColumn("Since", ({ since }) => since),
    {
      head: "",
      end: true,
      cell: ({ pid, kind }) =>
        kind === "application" && (
          <DialogButton
            look="quiet"
            row="data.end_connection"
            aria-label={`End connection ${pid}`}
            dialog={<EndConnection slug={slug} pid={pid} />}
          >
            End
          </DialogButton>
        ),
    },
  ];
}

function Doing({ of: { state, kind, waits_for } }: { readonly of: Connection }) {
  if (state === null) return <Status tone="off">Hidden</Status>;
  if (state === "active" && waits_for?.startsWith("Lock") === true)
    return <Status tone="warn">Waits for a lock</Status>;
  return (
    <Status tone={kind === "application" ? toneOf(state) : "off"}>
      {visible(state.slice(0, 1).toUpperCase() + state.slice(1))}
    </Status>
  );
}

function toneOf(state: string): Tone {
  if (state === "active") return "busy";
  return state.startsWith("idle in transaction") ? "warn" : "off";
}
