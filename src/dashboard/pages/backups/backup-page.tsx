import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { bytes, count, duration, visible } from "../../data/format.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { ActionButton } from "../../ui/action-button.tsx";
import { buttonLook, DialogButton } from "../../ui/button.tsx";
import { Page, Section, Empty, PageView } from "../../ui/page.tsx";
import { State, Ago, Fact, Mono } from "../../ui/text.tsx";
import { Table } from "../../ui/table.tsx";
import { BackupState, progressMs } from "./backups-page.tsx";
import { Download } from "./download.tsx";

type Backup = Answer<"backups.get">;

const route = getRouteApi("/projects/$slug/backups/$id");

export function BackupPage() {
  const { id } = route.useParams();
  const backup = useCall("backups.get", { params: { id } }, { pollMs: (found) => progressMs([found]) });
  return (
    <PageView title="Backup" of={backup}>
      {(data) => <One backup={data} />}
    </PageView>
  );
}

function One({ backup }: { readonly backup: Backup }) {
  const { slug } = route.useParams();
  const isWhole = backup.status === "completed" ? undefined : "Only a completed backup can be used.";
  return (
    <Page
      title={backup.content === "files" ? "Backup of the files" : "Backup"}
      actions={
        <>
          {backup.content === "files" && isWhole === undefined && (
            <Link
              to="/projects/$slug/storage"
              params={{ slug }}
              search={{ backup: backup.id }}
              className={buttonLook("plain")}
            >
              Look inside
            </Link>
          )}
          <ActionButton why={isWhole} {...verify(backup)} />
          <DialogButton
            look="primary"
            row="backups.restore"
            why={isWhole}
            dialog={<Restore slug={slug} backup={backup} />}
          >
            Restore
          </DialogButton>
        </>
      }
    >
      <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 sm:grid-cols-4">
        <Fact label="State">
          <span role="status">
            <BackupState backup={backup} />
          </span>
        </Fact>
        <Fact label="Made">
          <Ago at={backup.created_at} />
        </Fact>
        <Fact label="Size">{bytes(backup.size_bytes)}</Fact>
        <Fact label="Took">
          {backup.finished_at === null ? "–" : duration(Date.parse(backup.finished_at) - Date.parse(backup.created_at))}
        </Fact>
        <Fact label="Verification">
          {backup.verification === null ? (
            "not yet"
          ) : (
            <>
              <State of={backup.verification.status} /> <Ago at={backup.verification.verified_at} />
            </>
          )}
        </Fact>
        {backup.content === "database" && <Fact label="PostgreSQL">{backup.engine_version ?? "–"}</Fact>}
        <Fact label="Stored in">{backup.storage ?? "–"}</Fact>
        <Fact label="SHA-256">
          {backup.sha256 === null ? "–" : <Mono className="wrap-anywhere">{`${backup.sha256.slice(0, 16)}…`}</Mono>}
        </Fact>
      </dl>
      {backup.failure !== null && <p className="text-sm text-bad">{visible(backup.failure.summary)}</p>}
      {backup.verification?.reason !== null && backup.verification?.reason !== undefined && (
        <p className="text-sm text-bad">{visible(backup.verification.reason)}</p>
      )}
      {backup.content === "database" && (
        <Section title="Tables">
          <Tables backup={backup} />
        </Section>
      )}
      {backup.status === "completed" && <Download slug={slug} backup={backup} />}
    </Page>
  );
}

function Tables({ backup }: { readonly backup: Backup }) {
  const compared = new Map(backup.verification?.tables.map((each) => [each.table, each]) ?? []);
  if (backup.tables === null || backup.tables.length === 0) return <Empty title="No tables" />;
  return (
    <Table
      caption="Tables of the backup"
      rows={backup.tables}
      keyOf={({ table }) => table}
      columns={[
        { head: "Table", grow: true, cell: ({ table }) => <Mono>{table}</Mono> },
        { head: "Rows", end: true, cell: ({ rows }) => count(rows) },
        {
          head: "Found when verified",
          end: true,
          cell: ({ table }) => {
            const found = compared.get(table);
            if (found === undefined) return <span className="text-faint">–</span>;
            return (
              <span className={found.actual === found.expected ? "text-ok" : "text-bad"}>
                {found.actual === null ? "missing" : count(found.actual)}
              </span>
            );
          },
        },
      ]}
    />
  );
}

export const verify = ({ id }: Pick<Backup, "id">) =>
  ({
    row: "backups.verify",
    label: "Verify",
    input: { params: { id } },
    text: "A database is restored into a scratch one, and the rows of each table are compared; files are read and their checksums compared.",
  }) as const;

interface RestoreProps {
  readonly slug: string;
  readonly backup: Pick<Backup, "id" | "content">;
  readonly choice?: ReactNode;
}

export function Restore({ slug, backup, choice }: RestoreProps) {
  const navigate = useNavigate();
  return (
    <ActionDialog
      row="backups.restore"
      title="Restore a backup"
      submit={backup.content === "files" ? "Restore into a new folder" : "Restore into a new database"}
      input={() => ({ params: { slug }, body: { backup_id: backup.id } })}
      // The list of restored databases is there.
      onDone={() => void navigate({ to: "/projects/$slug/backups", params: { slug } })}
    >
      {choice}
      <p className="text-sm text-muted">
        {backup.content === "files"
          ? "Its files go into a new folder below $STORAGE_DIR/.restored. The live files are not touched."
          : "A new database beside the live one is filled from it. The live database is not touched; whether the application uses the new one is decided afterwards, by promoting it."}
      </p>
    </ActionDialog>
  );
}
