import { useState, type ReactNode } from "react";
import { useCall } from "../../data/api.ts";
import { exact } from "../../data/format.ts";
import { ConfirmAction, createRemoval } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Mono } from "../../ui/text.tsx";
import type { Answer } from "../../../contract/client.ts";

type Database = Answer<"backups.restored">["databases"][number];

/** Lists restored databases, each of which can be promoted or dropped. */
export function Restored({ slug }: { readonly slug: string }) {
  const restored = useCall("backups.restored", { params: { slug } });
  return (
    <List
      of={restored}
      caption="Restored databases"
      rows={({ databases }) => databases}
      columns={columnsFor(slug)}
      keyOf={({ database }) => database}
      empty={
        <p className="text-sm text-faint">None yet. To restore a backup, open its page; a moment, choose it above.</p>
      }
    />
  );
}

function columnsFor(slug: string): readonly Column<Database>[] {
  return [
    { head: "Database", grow: true, cell: ({ database }) => <Mono className="font-medium">{database}</Mono> },
    {
      head: "From",
      wide: true,
      cell: ({ backup_id: id, shows }) =>
        shows !== null ? (
          exact(shows)
        ) : id === null ? (
          <span className="text-faint">was live before</span>
        ) : (
          <Mono>{id}</Mono>
        ),
    },
    timeColumn("Made", (row) => row.created_at),
    { head: "", end: true, cell: (of) => <Actions slug={slug} of={of} /> },
  ];
}

interface OfDatabase {
  readonly slug: string;
  readonly of: Database;
  readonly choice?: ReactNode;
}

function Actions({ slug, of }: OfDatabase) {
  return (
    <span className="inline-flex gap-1">
      <DialogButton look="quiet" row="backups.promote" dialog={<Promote slug={slug} of={of} />}>
        Promote
      </DialogButton>
      <DialogButton look="quiet" row="backups.drop" dialog={dropping(slug).dialog(of)}>
        Drop
      </DialogButton>
    </span>
  );
}

export function Promote({ slug, of: { database, shows }, choice }: OfDatabase) {
  const { data } = useCall("deployments.list", { params: { slug } }, { enabled: shows !== null });
  const [goesBack, setGoesBack] = useState(false);
  const served = data?.deployments.filter(({ activated_at: at }) => at !== null && shows !== null && at <= shows) ?? [];
  const then = served.toSorted((a, b) => ((a.activated_at ?? "") < (b.activated_at ?? "") ? 1 : -1))[0];
  const target = then?.status === "retired" ? then.number : undefined;
  return (
    <ConfirmAction
      row="backups.promote"
      title="Promote a database"
      submit="Promote"
      typed={slug}
      input={{ params: { slug }, body: { database, ...(goesBack && { deployment: target }) } }}
      choice={choice}
    >
      The application restarts on <code>{database}</code>. What was written to the live database since then is not in
      it; the live one is kept, and promoting it goes back.
      {target !== undefined && (
        <Checkbox
          label={`Go back to deployment #${target} as well, which served then`}
          checked={goesBack}
          onChange={(event) => setGoesBack(event.target.checked)}
        />
      )}
    </ConfirmAction>
  );
}

export const dropping = (slug: string) =>
  createRemoval({
    row: "backups.drop",
    title: "Drop a database",
    verb: "Drop",
    nameOf: ({ database }: Pick<Database, "database">) => database,
    input: ({ database }) => ({ params: { slug, database } }),
    warning: "It is gone for good. The live database and the backups stay.",
  });
