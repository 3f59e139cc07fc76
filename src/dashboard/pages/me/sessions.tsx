import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe } from "../../data/api.ts";
import { signOut } from "../../data/session.ts";
import { switchOrganization } from "../../data/sign-in.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { Button } from "../../ui/button.tsx";
import { List, timeColumn } from "../../ui/table.tsx";
import { Section } from "../../ui/page.tsx";
import { Mono, Plain } from "../../ui/text.tsx";

type Session = Answer<"me.sessions">["sessions"][number];

/** Shows a person's organizations and the browsers in which they are signed in. */
export function Sessions() {
  const sessions = useCall("me.sessions", {});
  return (
    <>
      <Organizations />
      <Section
        title="Where you are signed in"
        lead="A session ends after seven days without use, and after thirty days."
        actions={
          <ActionButton row="me.end_sessions" label="Sign out everywhere" input={{}} onDone={() => void signOut()} />
        }
      >
        <List
          of={sessions}
          caption="Sessions"
          rows={(data) => data.sessions}
          keyOf={({ id }) => id}
          columns={[
            { head: "Browser", grow: true, cell: ({ user_agent: agent }) => <Plain>{agent}</Plain> },
            { head: "Address", wide: true, cell: ({ address }) => <Mono>{address}</Mono> },
            timeColumn("Last opened", (row: Session) => row.last_used_at),
          ]}
        />
      </Section>
    </>
  );
}

/** Offers the person's other organizations; nothing if there is only one. */
function Organizations() {
  const { person, organization } = useMe();
  const [busy, setBusy] = useState("");
  const others = person?.organizations.filter(({ slug }) => slug !== organization.slug) ?? [];
  if (others.length === 0) return null;
  return (
    <Section title="Your other organizations">
      <p className="flex flex-wrap gap-2">
        {others.map(({ slug, name }) => (
          <Button
            key={slug}
            busy={busy === slug}
            onClick={() => {
              setBusy(slug);
              void switchOrganization(slug).catch(() => setBusy(""));
            }}
          >
            {`Switch to ${name}`}
          </Button>
        ))}
      </p>
    </Section>
  );
}
