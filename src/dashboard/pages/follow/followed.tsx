import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import type { Project } from "../../data/project.ts";
import { Button } from "../../ui/button.tsx";
import { Section } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { Table, timeColumn, type Column } from "../../ui/table.tsx";
import { Fact, Mono, Plain } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";

type Delivery = Answer<"follow.deliveries">["deliveries"][number];

/** The repository that a project follows, and what its deliveries came to. */
export function Followed({ project: { slug, follows } }: { readonly project: Project }) {
  const params = { slug };
  const followed = useCall("follow.get", { params }, { enabled: follows });
  const fetch = useAction("follow.fetch");
  const why = useWhyNot("follow.fetch");
  const isFollowing = follows && followed.data !== undefined;
  return (
    <Section
      title="Followed repository"
      lead="Deploys from GitHub, GitLab, Gitea or another git server: `berth follow <url>` begins, `berth unfollow` ends it."
      actions={
        isFollowing && (
          <Button why={why} busy={fetch.isPending} onClick={() => fetch.mutate({ params })}>
            Fetch now
          </Button>
        )
      }
    >
      {fetch.error !== null && <Problem error={fetch.error} />}
      {isFollowing && (
        <>
          <dl className="grid gap-4 text-sm sm:grid-cols-2">
            <Fact label="Repository">{followed.data.url}</Fact>
            <Fact label="Branch">{followed.data.branch}</Fact>
            {followed.data.public_key !== null && <Fact label="Deploy key">{followed.data.public_key}</Fact>}
            <Fact label="Webhook">{followed.data.hook_url}</Fact>
            {followed.data.problem !== null && <Fact label="Problem">{followed.data.problem}</Fact>}
          </dl>
          <Deliveries slug={slug} />
        </>
      )}
    </Section>
  );
}

function Deliveries({ slug }: { readonly slug: string }) {
  const deliveries = useCall("follow.deliveries", { params: { slug } });
  return (
    <View of={deliveries}>
      {(data) => <Table caption="Deliveries" rows={data.deliveries} columns={columns} keyOf={({ id }) => id} />}
    </View>
  );
}

const columns: readonly Column<Delivery>[] = [
  { head: "Event", cell: ({ event }) => <Plain>{event}</Plain> },
  { head: "Commit", cell: ({ commit }) => <Mono>{commit?.slice(0, 8) ?? ""}</Mono> },
  { head: "Outcome", grow: true, cell: (delivery) => <Plain>{outcomeOf(delivery)}</Plain> },
  timeColumn("When", (row) => row.received_at, { wide: false }),
];

function outcomeOf({ status, reason, build }: Delivery): string {
  if (build === null) return reason === null ? status : `${status}: ${reason}`;
  return build.deployment === null
    ? `build ${build.number} ${build.status}`
    : `deployment ${build.deployment.number} ${build.deployment.status}`;
}
