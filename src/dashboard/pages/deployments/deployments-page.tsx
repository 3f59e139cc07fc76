import { Link } from "@tanstack/react-router";
import { GitCompareArrows, RotateCcw, Rocket } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { isOfBuild, shownStatus } from "../../../contract/states.ts";
import { useProject, useSlug, usePages } from "../../data/api.ts";
import { bytes, duration, firstLine, shortCommit } from "../../data/format.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { buttonLook, DialogButton } from "../../ui/button.tsx";
import { Older, coversItem, Table, timeColumn, type Column } from "../../ui/table.tsx";
import { Page, View } from "../../ui/page.tsx";
import { State, Tag, Ago, Mono, Plain, Prose } from "../../ui/text.tsx";
import { FirstDeployment } from "../projects/first-deployment.tsx";
import { RollbackDialog, type Deployment } from "./rollback-dialog.tsx";
import { deployAgain } from "./deploy-again.ts";

type Build = Answer<"builds.list">["builds"][number];

/** A deployment, or a build that led to none. */
interface Entry {
  readonly id: string;
  readonly at: string;
  readonly build: Build | undefined;
  readonly deployment: Deployment | undefined;
}

export function DeploymentsPage() {
  const slug = useSlug();
  const project = useProject();
  const deployments = usePages("deployments.list", { params: { slug } });
  const builds = usePages("builds.list", { params: { slug } });
  const isEmpty = builds.data?.pages[0]?.builds.length === 0;
  return (
    <Page
      title="Deployments"
      actions={
        <>
          <Link
            to="/projects/$slug/compare"
            params={{ slug }}
            // Hidden rather than removed, so that nothing moves when the list arrives.
            className={`${buttonLook("plain")} max-sm:order-last ${(deployments.data?.pages[0]?.deployments.length ?? 0) > 1 ? "" : "invisible"}`}
          >
            <GitCompareArrows aria-hidden size={14} /> Compare
          </Link>
          {!isEmpty && <ActionButton icon={<Rocket size={14} />} {...deployAgain(slug)} />}
        </>
      }
    >
      <View of={builds}>
        {({ pages: built }) =>
          isEmpty && project.data !== undefined ? (
            <FirstDeployment project={project.data} />
          ) : (
            <View of={deployments}>
              {({ pages }) => (
                <>
                  <Table
                    caption="Deployments"
                    grows
                    rows={entriesOf(
                      listOf(pages.map((page) => ({ items: page.deployments, next_cursor: page.next_cursor }))),
                      listOf(built.map((page) => ({ items: page.builds, next_cursor: page.next_cursor }))),
                    )}
                    columns={columnsFor(slug)}
                    phone={(entry) => <Item slug={slug} entry={entry} />}
                    keyOf={(entry) => entry.id}
                  />
                  <Older of={[deployments, builds]} />
                </>
              )}
            </View>
          )
        }
      </View>
    </Page>
  );
}

interface Loaded<T> {
  readonly items: readonly T[];
  /** When the oldest loaded item was created; empty if all items are loaded. */
  readonly from: string;
}

interface Part<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

function listOf<T extends { readonly created_at: string }>(pages: readonly Part<T>[]): Loaded<T> {
  const items = pages.flatMap((page) => page.items);
  const isWhole = (pages.at(-1)?.next_cursor ?? null) === null;
  return { items, from: isWhole ? "" : (items.at(-1)?.created_at ?? "") };
}

/** Merges both lists by time, as far back as both are loaded. */
function entriesOf(
  { items: deployments, from }: Loaded<Deployment>,
  { items: builds, from: built }: Loaded<Build>,
): Entry[] {
  const byId = new Map(builds.map((build) => [build.id, build]));
  const used = new Set(deployments.map((deployment) => deployment.build_id));
  const entries: Entry[] = [
    ...deployments.map((deployment) => ({
      id: deployment.id,
      at: deployment.created_at,
      deployment,
      build: byId.get(deployment.build_id),
    })),
    ...builds
      .filter((build) => !used.has(build.id))
      .map((build) => ({ id: build.id, at: build.created_at, build, deployment: undefined })),
  ];
  return entries.filter(({ at }) => at >= from && at >= built).toSorted((a, b) => (a.at < b.at ? 1 : -1));
}

function columnsFor(slug: string): readonly Column<Entry>[] {
  return [
    { head: "State", cell: ({ deployment, build }) => <State of={stateOf({ deployment, build })} /> },
    {
      head: "Version",
      grow: true,
      cell: ({ deployment, build }) => (
        <Link
          to="/projects/$slug/builds/$id"
          params={{ slug, id: deployment?.build_id ?? build?.id ?? "" }}
          className="group flex min-w-0 flex-col leading-4.5"
        >
          <span className="truncate font-medium group-hover:text-accent">
            {deployment === undefined ? `Build ${build?.number}` : `#${deployment.number}`}
            {build !== undefined && <Plain className="ml-2 font-normal">{firstLine(build.message)}</Plain>}
          </span>
          <span className="truncate text-xs text-faint">
            <Mono>{`${build?.branch ?? ""}@${shortCommit(deployment?.commit ?? build?.commit)}`}</Mono>
            {build !== undefined && build.author !== null && build.author !== build.requested_by && (
              <>
                {" · "}
                <Plain>{build.author}</Plain>
              </>
            )}
          </span>
          <span className="text-xs whitespace-normal text-bad empty:hidden">
            <Prose>{failureOf({ deployment, build })?.summary ?? ""}</Prose>
          </span>
        </Link>
      ),
    },
    {
      head: "By",
      wide: true,
      cell: ({ deployment, build }) => (
        <span className="inline-flex max-w-48 items-center gap-2">
          {deployment !== undefined && <Tag>{deployment.rehearse_only ? "rehearsal" : deployment.trigger}</Tag>}
          {build !== undefined && (deployment === undefined || isOfBuild(deployment.trigger)) && (
            <Plain className="truncate text-muted">{build.requested_by ?? "berth"}</Plain>
          )}
        </span>
      ),
    },
    {
      head: "Image",
      wide: true,
      end: true,
      cell: ({ deployment }) => <span className="text-muted">{bytes(deployment?.image_bytes)}</span>,
    },
    { head: "Took", wide: true, end: true, cell: (entry) => <span className="text-muted">{took(entry)}</span> },
    timeColumn("When", (row) => row.at),
    {
      head: "",
      end: true,
      cell: ({ deployment }) =>
        deployment?.status === "retired" && <RollbackButton slug={slug} deployment={deployment} />,
    },
  ];
}

const stateOf = ({ deployment, build }: Pick<Entry, "deployment" | "build">): string =>
  deployment === undefined ? (build?.status ?? "unknown") : shownStatus(deployment);

const failureOf = ({ deployment, build }: Pick<Entry, "deployment" | "build">) =>
  deployment?.failure ?? build?.failure ?? null;

interface ItemProps {
  readonly slug: string;
  readonly entry: Entry;
}

/** An entry on a phone: what was deployed, how that went and when, and why it failed or where it came from. */
function Item({ slug, entry: { at, deployment, build } }: ItemProps) {
  const failure = failureOf({ deployment, build });
  return (
    <div className="flex items-start gap-2">
      <div className="min-w-0 flex-1">
        <Link
          to="/projects/$slug/builds/$id"
          params={{ slug, id: deployment?.build_id ?? build?.id ?? "" }}
          className={`block truncate font-medium ${coversItem}`}
        >
          {deployment === undefined ? `Build ${build?.number}` : `#${deployment.number}`}{" "}
          {build !== undefined && <Plain>{firstLine(build.message)}</Plain>}
        </Link>
        <p className="truncate text-muted">
          <State of={stateOf({ deployment, build })} /> · <Ago at={at} />
          {(build?.author ?? null) !== null && (
            <>
              {" · "}
              <Plain>{build?.author ?? ""}</Plain>
            </>
          )}
        </p>
        {failure === null ? (
          <Mono className="block truncate text-xs text-faint">
            {`${build?.branch ?? ""}@${shortCommit(deployment?.commit ?? build?.commit)}`}
          </Mono>
        ) : (
          <p className="text-bad">
            <Prose>{failure.summary}</Prose>
          </p>
        )}
      </div>
      {deployment?.status === "retired" && (
        <span className="relative">
          <RollbackButton slug={slug} deployment={deployment} />
        </span>
      )}
    </div>
  );
}

function took({ deployment, build }: Entry): string {
  // The end of a deployment that never went live is unknown; only the end of its build is known.
  const end = deployment === undefined ? (build?.finished_at ?? null) : deployment.activated_at;
  const begin = deployment === undefined || isOfBuild(deployment.trigger) ? build?.created_at : deployment.created_at;
  return end === null || begin === undefined ? "–" : duration(Math.max(0, Date.parse(end) - Date.parse(begin)));
}

function RollbackButton({ slug, deployment }: { readonly slug: string; readonly deployment: Deployment }) {
  return (
    <DialogButton
      look="quiet"
      icon={<RotateCcw size={13} />}
      row="deployments.rollback"
      aria-label={`Roll back to #${deployment.number}`}
      dialog={<RollbackDialog slug={slug} target={deployment} />}
    >
      <span className="max-sm:hidden">Roll back</span>
    </DialogButton>
  );
}
