import { useIsMutating } from "@tanstack/react-query";
import { GitBranch } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, type Project } from "../../data/api.ts";
import { shortCommit } from "../../data/format.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { Copied, DialogButton } from "../../ui/button.tsx";
import { Section, Empty, View } from "../../ui/page.tsx";
import { Table, timeColumn, type Column } from "../../ui/table.tsx";
import { Ago, Fact, Mono, Plain } from "../../ui/text.tsx";
import { FollowDialog } from "./follow-dialog.tsx";
import { StopFollowing } from "./stop-following.tsx";

type Delivery = Answer<"follow.deliveries">["deliveries"][number];

/** Shows the repository that a project follows, what its host needs, and the results of its deliveries. */
export function Followed({ project: { slug, follows } }: { readonly project: Project }) {
  // While following is being stopped, a refresh of the page must not ask for what no longer exists.
  const isAsked = useIsMutating({ mutationKey: ["follow.delete"] }) === 0 && follows;
  const followed = useCall("follow.get", { params: { slug } }, { enabled: isAsked });
  const dialog = <FollowDialog slug={slug} of={follows ? (followed.data ?? null) : null} />;
  return (
    <Section
      title="Followed repository"
      lead="Deploys each new commit of a branch on GitHub, GitLab, Gitea or another git server."
      actions={
        follows && (
          <div className="flex flex-wrap items-center gap-2">
            <ActionButton {...fetchNow(slug)} />
            <DialogButton row="follow.set" dialog={dialog}>
              Change
            </DialogButton>
            <DialogButton look="danger" row="follow.delete" dialog={<StopFollowing slug={slug} />}>
              Stop following
            </DialogButton>
          </div>
        )
      }
    >
      {follows ? (
        <View of={followed}>{(data) => <Facts of={data} />}</View>
      ) : (
        <Empty
          icon={<GitBranch size={24} />}
          title="No repository is followed"
          action={
            <DialogButton row="follow.set" dialog={dialog}>
              Follow a repository
            </DialogButton>
          }
        >
          Deployments come by <code>git push berth</code>, from a folder, or from a branch that is followed here.
        </Empty>
      )}
      {follows && <Deliveries slug={slug} isAsked={isAsked} />}
    </Section>
  );
}

export const fetchNow = (slug: string) =>
  ({
    row: "follow.fetch",
    label: "Fetch now",
    input: { params: { slug }, body: {} },
    text: "If the branch points at another commit by now, that is deployed.",
  }) as const;

function Facts({ of }: { readonly of: Answer<"follow.get"> }) {
  return (
    <>
      {of.problem !== null && (
        <p role="alert" className="rounded-md border border-bad/35 bg-bad/7 px-3 py-2.5 text-sm">
          The last fetch failed: <Plain>{of.problem}</Plain>
        </p>
      )}
      <dl className="grid gap-x-6 gap-y-4 rounded-md border border-line p-4 grid-cols-2 lg:grid-cols-4">
        <Fact label="Repository" wide>
          <Mono className="wrap-anywhere">{of.url}</Mono>
        </Fact>
        <Fact label="Branch">
          <Mono className="wrap-anywhere">{of.branch}</Mono>
        </Fact>
        <Fact label="Fetched">
          {of.fetched_at === null ? (
            <span className="text-faint">not yet</span>
          ) : (
            <>
              <Mono>{shortCommit(of.commit)}</Mono> <Ago at={of.fetched_at} />
            </>
          )}
        </Fact>
        <Fact label="Webhook of the repository" wide>
          <Copied text={of.hook_url} label="Copy the webhook's address" />
        </Fact>
        <Fact label="Access token">{of.has_token ? "stored" : <span className="text-faint">none</span>}</Fact>
        <Fact label="Commit statuses">
          {of.status_problem === null ? (
            of.has_token ? (
              "set"
            ) : (
              <span className="text-faint">need a token</span>
            )
          ) : (
            <Plain className="text-bad">{of.status_problem}</Plain>
          )}
        </Fact>
        {of.public_key !== null && (
          <Fact label="Deploy key" wide>
            <Copied text={of.public_key} label="Copy the deploy key" />
          </Fact>
        )}
      </dl>
    </>
  );
}

function Deliveries({ slug, isAsked }: { readonly slug: string; readonly isAsked: boolean }) {
  const deliveries = useCall("follow.deliveries", { params: { slug } }, { enabled: isAsked });
  return (
    <View of={deliveries}>
      {(data) =>
        data.deliveries.length > 0 && (
          <Table
            caption="Deliveries"
            rows={data.deliveries}
            columns={columns}
            keyOf={({ id }) => id}
            phone={(delivery) => <Item delivery={delivery} />}
          />
        )
      }
    </View>
  );
}

const eventOf = ({ event, branch }: Delivery) => (branch === null ? event : `${event} ${branch}`);

function Item({ delivery }: { readonly delivery: Delivery }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <Plain>{eventOf(delivery)}</Plain>
        <Ago at={delivery.received_at} className="text-xs text-faint" />
      </span>
      <span className="block text-xs wrap-anywhere text-muted">
        <Mono>{shortCommit(delivery.commit)}</Mono> <Plain>{outcomeOf(delivery)}</Plain>
      </span>
    </>
  );
}

const columns: readonly Column<Delivery>[] = [
  { head: "Event", cell: (delivery) => <Plain>{eventOf(delivery)}</Plain> },
  { head: "Commit", cell: ({ commit }) => <Mono>{shortCommit(commit)}</Mono> },
  { head: "Outcome", grow: true, cell: (delivery) => <Plain>{outcomeOf(delivery)}</Plain> },
  timeColumn("When", (row) => row.received_at),
];

function outcomeOf({ status, reason, build }: Delivery): string {
  if (build === null) return reason === null ? status : `${status}: ${reason}`;
  return build.deployment === null
    ? `build ${build.number} ${build.status}`
    : `deployment ${build.deployment.number} ${build.deployment.status}`;
}
