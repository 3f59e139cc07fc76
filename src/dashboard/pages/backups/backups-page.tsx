import { Link } from "@tanstack/react-router";
import { ArchiveRestore, Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useSlug, usePages } from "../../data/api.ts";
import { bytes, capitalized } from "../../data/format.ts";
import { useHasDatabase } from "../../data/use-has-database.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { buttonLook } from "../../ui/button.tsx";
import { List, coversItem, type Column } from "../../ui/table.tsx";
import { Page, Section, Empty } from "../../ui/page.tsx";
import { State, Tag, Ago, Mono } from "../../ui/text.tsx";
import { Moments } from "./moments.tsx";
import { Restored } from "./restored.tsx";

type Backup = Answer<"backups.list">["backups"][number];

/** The page of the project's backups, and of the databases that were restored from them. */
export function BackupsPage() {
  const slug = useSlug();
  const has = useHasDatabase(slug);
  const hasNone = has === false;
  const backups = usePages("backups.list", { params: { slug } }, (pages) =>
    progressMs(pages.flatMap((page) => page.backups)),
  );
  const all = backups.data?.pages.flatMap((page) => page.backups) ?? [];
  const isWorking = all.some(({ operation }) => operation !== null);
  const why = isWorking ? "An operation is under way." : undefined;
  const action = (
    <>
      <ActionButton icon={<Plus size={15} />} why={why} {...backUp(slug, "files")} />
      {has === true && (
        <ActionButton look="primary" icon={<Plus size={15} />} why={why} {...backUp(slug, "database")} />
      )}
    </>
  );
  return (
    <Page
      title="Backups"
      lead="Berth backs up the database and the files in $STORAGE_DIR every day. A verification restores a database into a scratch one and compares the rows of each table; of files, it reads every one."
      actions={all.length > 0 ? action : undefined}
    >
      <List
        of={backups}
        caption="Backups"
        grows
        rows={() => all}
        columns={columnsFor(slug)}
        keyOf={({ id }) => id}
        phone={(backup) => <OnPhone slug={slug} backup={backup} />}
        empty={
          <Empty
            icon={<ArchiveRestore size={24} />}
            title="No backups yet"
            action={
              <div className="flex flex-wrap justify-center gap-2">
                {hasNone && <ToDatabase slug={slug} />}
                {action}
              </div>
            }
          >
            {hasNone
              ? "The project has no database. Berth backs up the files in $STORAGE_DIR every day once there are any."
              : "Berth creates the first one within a day, or now on request."}
          </Empty>
        }
      />
      {has === true && <Moments slug={slug} />}
      {has === true && (
        <Section
          title="Restored databases"
          lead="Promoting a restored database makes it the live one; the previous live database is kept."
        >
          <Restored slug={slug} />
        </Section>
      )}
    </Page>
  );
}

export const backUp = (slug: string, content: Backup["content"]) =>
  ({
    row: "backups.create",
    label: `Back up the ${content}`,
    input: { params: { slug }, body: { content } },
    text: "The application goes on meanwhile.",
  }) as const;

function ToDatabase({ slug }: { readonly slug: string }) {
  return (
    <Link to="/projects/$slug/database" params={{ slug }} className={buttonLook("plain")}>
      Create a database
    </Link>
  );
}

function columnsFor(slug: string): readonly Column<Backup>[] {
  return [
    { head: "State", cell: (backup) => <BackupState backup={backup} /> },
    {
      head: "Made",
      grow: true,
      cell: ({ id, created_at: at }) => (
        <Link to="/projects/$slug/backups/$id" params={{ slug, id }} className="group flex flex-col leading-4.5">
          <Ago at={at} className="font-medium group-hover:text-accent" />
          <Mono className="truncate text-xs text-faint">{id}</Mono>
        </Link>
      ),
    },
    { head: "Of", wide: true, cell: ({ content }) => <Tag>{content}</Tag> },
    { head: "By", wide: true, cell: ({ origin }) => <Tag>{origin}</Tag> },
    {
      head: "Verified",
      cell: ({ verification }) =>
        verification === null ? <span className="text-faint">not yet</span> : <State of={verification.status} />,
    },
    { head: "Size", end: true, wide: true, cell: ({ size_bytes: size }) => bytes(size) },
    {
      head: "",
      end: true,
      wide: true,
      cell: ({ id, content, status }) =>
        content === "files" &&
        status === "completed" && (
          <Link
            to="/projects/$slug/storage"
            params={{ slug }}
            search={{ backup: id }}
            className="target text-sm whitespace-nowrap text-accent hover:underline"
          >
            Look inside
          </Link>
        ),
    },
  ];
}

function OnPhone({ slug, backup }: { readonly slug: string; readonly backup: Backup }) {
  const { id, content, created_at: at, size_bytes: size, verification } = backup;
  return (
    <>
      <span className="flex items-center justify-between gap-2">
        <Link to="/projects/$slug/backups/$id" params={{ slug, id }} className={`font-medium ${coversItem}`}>
          <Ago at={at} />
        </Link>
        <BackupState backup={backup} />
      </span>
      <span className="text-xs text-muted">
        {capitalized(content)} · {bytes(size)} ·{" "}
        {verification === null ? "not verified yet" : capitalized(verification.status).toLowerCase()}
      </span>
    </>
  );
}

/** How often a backup's progress is read: only its phases are in the stream of changes, not its tables. */
export function progressMs(backups: readonly (Pick<Backup, "operation"> | undefined)[]): number | false {
  return backups.some((backup) => (backup?.operation ?? null) !== null) && 3000;
}

export function BackupState({ backup }: { readonly backup: Pick<Backup, "status" | "operation"> }) {
  const { operation, status } = backup;
  if (operation === null) return <State of={status} />;
  const tables = operation.tables_total === null ? "" : ` ${operation.tables_done}/${operation.tables_total}`;
  return <State of="running" word={`${capitalized(operation.phase)}${tables}`} />;
}
