import { getRouteApi } from "@tanstack/react-router";
import { call, useClient, useSlug } from "../../data/api.ts";
import { Entries } from "../../ui/entries.tsx";
import { Page } from "../../ui/page.tsx";

const route = getRouteApi("/projects/$slug/timeline");

export function TimelinePage() {
  const slug = useSlug();
  const client = useClient();
  const { kind } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page title="Timeline" lead="Who changed what, what was deployed, what crashed and what failed, in one order.">
      <Entries
        queryKey={["timeline.list", { params: { slug } }, kind]}
        read={async (cursor, signal) => {
          const page = await call(client, "timeline.list", { params: { slug }, query: { cursor, kind }, signal });
          return { entries: page.timeline, next: page.next_cursor };
        }}
        kind={kind}
        onKind={(next) => void navigate({ search: next === undefined ? {} : { kind: next }, replace: true })}
        empty="Nothing happened yet."
      />
    </Page>
  );
}
