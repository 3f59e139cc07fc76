import { getRouteApi, Link } from "@tanstack/react-router";
import { Download, Folder, HardDrive } from "lucide-react";
import { useState } from "react";
import type { Answer, Client } from "../../../contract/client.ts";
import { call, useClient } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { saveFile } from "../../data/save-file.ts";
import { usePages } from "../../data/use-pages.ts";
import { IconButton } from "../../ui/button.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { timeColumn, type Column } from "../../ui/table.tsx";
import { Mono } from "../../ui/text.tsx";
import { Empty } from "../../ui/view.tsx";

export interface StorageSearch {
  /** A folder below the storage folder. */
  readonly path?: string;
}

type Stored = Answer<"disk.files">["files"][number];

const route = getRouteApi("/projects/$slug/storage");

/** The page of a project's storage folder: one of its folders, with files to download. */
export function StoragePage() {
  const { slug } = route.useParams();
  const { path } = route.useSearch();
  const files = usePages("disk.files", { params: { slug }, query: { path } });
  return (
    <Page title="Storage" lead="The files in $STORAGE_DIR, which every replica and deployment of this project shares.">
      <Crumbs slug={slug} path={path} />
      <List
        of={files}
        caption={`Files of ${path ?? "$STORAGE_DIR"}`}
        rows={({ pages }) => pages.flatMap((page) => page.files)}
        columns={columnsFor(slug, path)}
        keyOf={({ name }) => name}
        empty={
          <Empty icon={<HardDrive size={24} />} title="No files here">
            What the application writes below $STORAGE_DIR stays when it restarts or is deployed, and shows up here.
          </Empty>
        }
      />
    </Page>
  );
}

function Crumbs({ slug, path = "" }: { readonly slug: string; readonly path: string | undefined }) {
  const parts = path.split("/").filter((part) => part !== "");
  return (
    <nav aria-label="Folder" className="flex min-w-0 flex-wrap items-center gap-1 text-sm">
      {["$STORAGE_DIR", ...parts].map((part, index) => (
        <span key={parts.slice(0, index).join("/")} className="flex min-w-0 items-center gap-1">
          {index > 0 && <span className="text-faint">/</span>}
          <Link
            to="/projects/$slug/storage"
            params={{ slug }}
            search={index === 0 ? {} : { path: parts.slice(0, index).join("/") }}
            className="text-accent min-w-0 truncate hover:underline"
          >
            <Mono>{part}</Mono>
          </Link>
        </span>
      ))}
    </nav>
  );
}

function columnsFor(slug: string, folder: string | undefined): readonly Column<Stored>[] {
  const pathOf = (name: string) => (folder === undefined ? name : `${folder}/${name}`);
  return [
    {
      head: "Name",
      grow: true,
      cell: ({ name, kind }) =>
        kind === "folder" ? (
          <Link
            to="/projects/$slug/storage"
            params={{ slug }}
            search={{ path: pathOf(name) }}
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
      cell: ({ name, kind }) => kind === "file" && <Save slug={slug} path={pathOf(name)} name={name} />,
    },
  ];
}

function Save({ slug, path, name }: { readonly slug: string; readonly path: string; readonly name: string }) {
  const client = useClient();
  const [state, setState] = useState<"busy" | Error>();
  const save = async () => {
    setState("busy");
    try {
      saveFile(name, await receive(client, slug, path));
      setState(undefined);
    } catch (error) {
      setState(error as Error);
    }
  };
  return (
    <>
      {state instanceof Error && <Problem error={state} />}
      <IconButton
        label={`Download ${name}`}
        row="disk.read"
        why={state === "busy" ? "It is being downloaded." : undefined}
        onClick={() => void save()}
      >
        <Download size={14} />
      </IconButton>
    </>
  );
}

async function receive(client: Client, slug: string, path: string): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const part: Answer<"disk.read"> = await call(client, "disk.read", { params: { slug }, query: { path, offset } });
    parts.push(Uint8Array.from(atob(part.base64), (each) => each.charCodeAt(0)));
    offset = part.next_offset;
  }
  return new Blob(parts);
}
