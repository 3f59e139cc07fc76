import { getRouteApi, Link } from "@tanstack/react-router";
import { ArchiveRestore, Download, Folder, HardDrive, Upload } from "lucide-react";
import type { Answer, Client } from "../../../contract/client.ts";
import { call, useClient, usePages } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { useOneCall } from "../../data/use-one-call.ts";
import { saveFile } from "../../data/save-file.ts";
import { DialogButton, DialogIconButton, IconButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Page, Empty, Problem } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";
import { createRemoval } from "../../ui/action-dialog.tsx";
import { pathIn } from "./path-in.ts";
import { RestorePath } from "./restore-path.tsx";
import { SnapshotChoice } from "./snapshot-choice.tsx";
import { UploadDialog } from "./upload-dialog.tsx";

type Stored = Answer<"disk.files">["files"][number];

const route = getRouteApi("/projects/$slug/storage");

/** The page of a project's storage folder: one of its folders, with files to download. */
export function StoragePage() {
  const { slug } = route.useParams();
  const { path, backup } = route.useSearch();
  const files = usePages("disk.files", { params: { slug }, query: { path, backup } });
  const isLive = backup === undefined && path?.split("/")[0] !== ".restored";
  return (
    <Page
      title="Storage"
      lead="The files in $STORAGE_DIR, which every replica and deployment of this project shares."
      actions={
        <>
          {isLive && (
            <DialogButton
              row="disk.write"
              icon={<Upload size={14} />}
              dialog={<UploadDialog slug={slug} folder={path} />}
            >
              Upload
            </DialogButton>
          )}
          <SnapshotChoice slug={slug} {...(path === undefined ? {} : { path })} {...ofBackup(backup)} />
        </>
      }
    >
      <Crumbs slug={slug} path={path} backup={backup} />
      <List
        of={files}
        caption={`Files of ${path ?? "$STORAGE_DIR"}`}
        rows={({ pages }) => pages.flatMap((page) => page.files)}
        columns={columnsFor({ slug, path, backup })}
        keyOf={({ name }) => name}
        empty={
          <Empty icon={<HardDrive size={24} />} title="No files here">
            {backup === undefined
              ? "What you upload, or the application writes below $STORAGE_DIR, stays when it restarts or is deployed."
              : "The folder was empty then."}
          </Empty>
        }
      />
    </Page>
  );
}

const ofBackup = (backup: string | undefined) => (backup === undefined ? {} : { backup });

interface Shown {
  readonly slug: string;
  readonly path: string | undefined;
  readonly backup: string | undefined;
}

function Crumbs({ slug, path = "", backup }: Shown) {
  const parts = path.split("/").filter((part) => part !== "");
  return (
    <nav aria-label="Folder" className="flex min-w-0 flex-wrap items-center gap-1 text-sm">
      {["$STORAGE_DIR", ...parts].map((part, index) => (
        <span key={parts.slice(0, index).join("/")} className="flex min-w-0 items-center gap-1">
          {index > 0 && <span className="text-faint">/</span>}
          <Link
            to="/projects/$slug/storage"
            params={{ slug }}
            search={{ ...(index === 0 ? {} : { path: parts.slice(0, index).join("/") }), ...ofBackup(backup) }}
            className="text-accent min-w-0 truncate hover:underline"
          >
            <Mono>{part}</Mono>
          </Link>
        </span>
      ))}
    </nav>
  );
}

function columnsFor({ slug, path: folder, backup }: Shown): readonly Column<Stored>[] {
  const pathOf = (name: string) => pathIn(folder, name);
  const removal = createRemoval({
    row: "disk.remove",
    title: "Delete from $STORAGE_DIR",
    verb: "Delete",
    nameOf: (name: string) => name,
    input: (name) => ({ params: { slug }, body: { path: pathOf(name) } }),
    warning: "The application loses it at once, with everything in it. A backup of the files that holds it keeps it.",
  });
  return [
    {
      head: "Name",
      grow: true,
      cell: ({ name, kind }) =>
        kind === "folder" ? (
          <Link
            to="/projects/$slug/storage"
            params={{ slug }}
            search={{ path: pathOf(name), ...ofBackup(backup) }}
            className="target flex min-w-0 items-center gap-2 hover:text-accent"
          >
            <Folder aria-hidden size={15} className="shrink-0 text-accent" />
            <Mono className="truncate">{name}</Mono>
          </Link>
        ) : (
          <Mono className="truncate">{name}</Mono>
        ),
    },
    {
      head: "Size",
      end: true,
      cell: ({ kind, size_bytes }) => <span className="text-muted">{kind === "file" ? bytes(size_bytes) : kind}</span>,
    },
    timeColumn("Modified", (file) => file.modified_at),
    {
      head: "",
      end: true,
      cell: ({ name, kind }) => {
        const from = sourceOf(pathOf(name), backup);
        return (
          <span className="inline-flex">
            {from !== undefined && (
              <DialogIconButton
                label={`Restore ${name}`}
                row="backups.restore_path"
                dialog={<RestorePath slug={slug} {...from} />}
              >
                <ArchiveRestore size={14} />
              </DialogIconButton>
            )}
            {kind === "file" && <Save slug={slug} path={pathOf(name)} name={name} backup={backup} />}
            {backup === undefined && removal.button(name)}
          </span>
        );
      },
    },
  ];
}

/** Returns from where a shown path can be put into the live files: from the backup, or from a folder below `.restored`. */
function sourceOf(path: string, backup: string | undefined) {
  if (backup !== undefined) return { path, source: { backup_id: backup } };
  const [first, folder, ...rest] = path.split("/");
  if (first !== ".restored" || folder === undefined || rest.length === 0) return undefined;
  return { path: rest.join("/"), source: { folder } };
}

function Save({ slug, path, name, backup }: Shown & { readonly path: string; readonly name: string }) {
  const client = useClient();
  const { isBusy, error, run } = useOneCall();
  const save = async () => saveFile(name, await receive(client, { slug, path, backup }));
  return (
    <>
      {error !== null && <Problem error={error} />}
      <IconButton
        label={`Download ${name}`}
        row="disk.read"
        why={isBusy ? "It is being downloaded." : undefined}
        onClick={() => void run(save)}
      >
        <Download size={14} />
      </IconButton>
    </>
  );
}

async function receive(client: Client, { slug, path, backup }: Shown & { readonly path: string }): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const query = { path, offset, backup };
    const part: Answer<"disk.read"> = await call(client, "disk.read", { params: { slug }, query });
    parts.push(Uint8Array.from(atob(part.base64), (each) => each.charCodeAt(0)));
    offset = part.next_offset;
  }
  return new Blob(parts);
}
