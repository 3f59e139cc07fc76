import { getRouteApi, Link } from "@tanstack/react-router";
import { ChevronRight, FileCode2, Folder } from "lucide-react";
import { useCall } from "../../data/api.ts";
import { bytes, shortCommit, visible } from "../../data/format.ts";
import { CopyButton } from "../../ui/button.tsx";
import { Page, Empty, View } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";
import { entriesOf, type SourceFile } from "./entries-of.ts";

export interface SourceSearch {
  /** A file, or a folder with a `/` at its end. */
  readonly path?: string;
}

const route = getRouteApi("/projects/$slug/files");

export function SourcePage() {
  const { slug } = route.useParams();
  const { path = "" } = route.useSearch();
  const isFile = path !== "" && !path.endsWith("/");
  const files = useCall("builds.source", { params: { slug } }, { enabled: !isFile });
  return (
    <Page title="Files" lead="The newest source of this project, as it was pushed or uploaded.">
      {isFile ? (
        <FileView path={path} />
      ) : (
        <View of={files}>
          {(data) =>
            data.commit === null ? (
              <Empty icon={<FileCode2 size={24} />} title="No source yet" action={<HowToDeploy slug={slug} />}>
                Push with git or deploy a folder, and its files show up here.
              </Empty>
            ) : (
              <>
                {data.ahead !== null && <p className="text-warn text-sm">{data.ahead.text}</p>}
                <FolderView files={data.files} commit={data.commit} path={path} />
              </>
            )
          }
        </View>
      )}
    </Page>
  );
}

function Crumbs({ path }: { readonly path: string }) {
  const { slug } = route.useParams();
  const parts = path.split("/").filter((part) => part !== "");
  return (
    <nav aria-label="Folder" className="flex min-w-0 flex-wrap items-center gap-1 text-sm">
      <Link to="/projects/$slug/files" params={{ slug }} className="text-accent hover:underline">
        {slug}
      </Link>
      {parts.map((part, index) => {
        const isLast = index === parts.length - 1;
        const folder = `${parts.slice(0, index + 1).join("/")}/`;
        return (
          <span key={folder} className="flex items-center gap-1">
            <ChevronRight aria-hidden size={13} className="text-faint" />
            {isLast ? (
              <Mono>{part}</Mono>
            ) : (
              <Link
                to="/projects/$slug/files"
                params={{ slug }}
                search={{ path: folder }}
                className="text-accent hover:underline"
              >
                <Mono>{part}</Mono>
              </Link>
            )}
          </span>
        );
      })}
    </nav>
  );
}

interface FolderViewProps {
  readonly files: readonly SourceFile[];
  readonly commit: string;
  readonly path: string;
}

function FolderView({ files, commit, path }: FolderViewProps) {
  const { slug } = route.useParams();
  const entries = entriesOf(files, path);
  if (entries.length === 0 && path !== "")
    return (
      <>
        <Crumbs path={path} />
        <Empty icon={<Folder size={24} />} title="No such folder">
          The commit {shortCommit(commit)} has no folder <Mono>{path}</Mono>.
        </Empty>
      </>
    );
  return (
    <>
      <div className="flex items-center justify-between gap-4">
        <Crumbs path={path} />
        <Mono className="text-sm text-faint">{shortCommit(commit)}</Mono>
      </div>
      <ul className="divide-y divide-line rounded-md border border-line text-sm">
        {entries.map(({ name, sizeBytes }) => (
          <li key={name}>
            <Link
              to="/projects/$slug/files"
              params={{ slug }}
              search={{ path: `${path}${name}` }}
              className="target flex h-9 items-center gap-2.5 px-3 hover:bg-panel focus-visible:outline-offset-[-2px]"
            >
              {sizeBytes === null ? (
                <Folder aria-hidden size={15} className="shrink-0 text-accent" />
              ) : (
                <FileCode2 aria-hidden size={15} className="shrink-0 text-faint" />
              )}
              <Mono className="min-w-0 flex-1 truncate">{name}</Mono>
              <span className="text-muted">{sizeBytes === null ? "" : bytes(sizeBytes)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function FileView({ path }: { readonly path: string }) {
  const { slug } = route.useParams();
  const file = useCall("builds.source", { params: { slug }, query: { path } });
  return (
    <>
      <div className="flex min-h-8 items-center justify-between gap-4 max-sm:min-h-11">
        <Crumbs path={path} />
        {typeof file.data?.text === "string" && <CopyButton text={file.data.text} label="Copy the file" />}
      </div>
      <View of={file}>
        {({ text }) =>
          text === null ? (
            <Empty title="Not a text file">It is built as it is, and can be read in the repository.</Empty>
          ) : (
            <Numbered text={text} />
          )
        }
      </View>
    </>
  );
}

function Numbered({ text }: { readonly text: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div
      tabIndex={0}
      className="flex max-h-[calc(100dvh-10rem-var(--header))] overflow-auto rounded-md border border-line text-[13.5px] leading-5"
    >
      <pre aria-hidden className="sticky left-0 h-max bg-bg py-3 pr-3 pl-4 text-right text-faint select-none">
        {lines.map((_, index) => index + 1).join("\n")}
      </pre>
      <pre className="h-max py-3 pr-4">{visible(lines.join("\n"))}</pre>
    </div>
  );
}
