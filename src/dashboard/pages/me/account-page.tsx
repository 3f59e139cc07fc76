import { Pencil } from "lucide-react";
import { useCall, useMe } from "../../data/api.ts";
import { bytes, count } from "../../data/format.ts";
import { signOut } from "../../data/session.ts";
import { ConfirmAction, ActionDialog } from "../../ui/action-dialog.tsx";
import { Button, DialogButton, DialogIconButton } from "../../ui/button.tsx";
import { Page, Section, Skeleton, View } from "../../ui/page.tsx";
import { Tag, Ago, Fact, Mono, Plain } from "../../ui/text.tsx";
import { Isolation } from "../platform/isolation.tsx";
import { Sessions } from "./sessions.tsx";
import { Ways } from "./ways.tsx";
import { textOf, TextField } from "../../ui/field.tsx";

export function AccountPage() {
  const { organization, person, role, token, platform, platform_admin: isOperator } = useMe();
  return (
    <Page
      title="Your session"
      actions={
        <>
          {person === null ? <RevokeToken /> : <LeaveOrganization />}
          <Button onClick={() => void signOut()}>Sign out</Button>
        </>
      }
    >
      <dl className="grid grid-cols-2 gap-5 rounded-md border border-line p-5 sm:grid-cols-4">
        <Fact label="Organization">
          <Plain>{organization.name}</Plain> <Mono className="text-faint">{organization.slug}</Mono>
        </Fact>
        {person === null ? (
          <Fact label="Token">
            <Plain>{token.name}</Plain> <Mono className="text-faint">{`${token.prefix}…`}</Mono>
          </Fact>
        ) : (
          <Fact label="Name">
            <span className="inline-flex items-center gap-1">
              <Plain>{person.name}</Plain>
              <DialogIconButton label="Change your name" row="me.update" dialog={<Rename name={person.name} />}>
                <Pencil size={14} />
              </DialogIconButton>
            </span>
          </Fact>
        )}
        <Fact label="Role">{isOperator ? "operator, owner of its own organization" : role}</Fact>
        <Fact label="Expires">{token.expires_at === null ? "never" : <Ago at={token.expires_at} />}</Fact>
      </dl>
      {person !== null && (
        <>
          <Ways />
          <Sessions />
        </>
      )}
      <Usage />
      <Limits />
      <Section
        title="Scopes"
        {...(token.approval_mode
          ? { lead: "In approval mode: a person decides before anything is deleted or restored." }
          : {})}
      >
        <p className="flex flex-wrap gap-1">
          {token.scopes.map((scope) => (
            <Tag key={scope}>{scope}</Tag>
          ))}
        </p>
      </Section>
      <Section title="How applications are kept apart here">
        <Isolation of={platform.isolation} />
        {platform.missing.map(({ part, effect }) => (
          <p key={part} className="text-sm text-warn">
            {effect} <Mono className="text-xs">{part}</Mono>
          </p>
        ))}
        <p className="text-xs text-faint">
          Berth {platform.version} · runtime {platform.runtime} · network {platform.network}
        </p>
      </Section>
    </Page>
  );
}

/** Ends the person's own membership, and so this session. */
function LeaveOrganization() {
  const { organization } = useMe();
  return (
    <DialogButton
      row="me.leave"
      dialog={
        <ConfirmAction
          row="me.leave"
          title={`Leave ${organization.name}`}
          submit="Leave"
          typed={organization.slug}
          input={{}}
        >
          Your sessions here end within a second, and so do the tokens and SSH keys that you created and the programs
          that you connected. To come back, you need an invitation.
        </ConfirmAction>
      }
    >
      Leave the organization
    </DialogButton>
  );
}

/** Revokes the token, and so ends every session that uses it. */
function RevokeToken() {
  const { token } = useMe();
  return (
    <DialogButton
      row="tokens.delete"
      dialog={
        <ConfirmAction
          row="tokens.delete"
          title="Sign out everywhere"
          submit="Revoke the token"
          typed={token.name}
          input={{ params: { id: token.id } }}
        >
          The token of this session is revoked: every browser, script and agent that uses it, and the SSH keys it
          registered, are refused within a second. Signing in again needs another token.
        </ConfirmAction>
      }
    >
      Sign out everywhere
    </DialogButton>
  );
}

/** Shows what the organization has and uses, and its limit of projects. */
function Usage() {
  const overview = useCall("overview.get", {});
  return (
    <Section title="Usage of the organization" lead="Each project's page shows its own limits.">
      <View of={overview}>
        {({ organization: { max_projects: most }, totals }) => (
          <dl className="grid grid-cols-2 gap-5 rounded-md border border-line p-5 sm:grid-cols-5">
            <Fact label="Projects">
              {totals.projects} of {most}
            </Fact>
            <Fact label="Storage folders">{bytes(totals.storage_bytes)}</Fact>
            <Fact label="Databases">{bytes(totals.database_bytes)}</Fact>
            <Fact label="Images and caches">{bytes(totals.images_bytes)}</Fact>
            <Fact label="Requests, last hour">{count(totals.requests_last_hour)}</Fact>
          </dl>
        )}
      </View>
    </Section>
  );
}

const limitLabels = [
  ["reads_per_minute", "Reads a minute"],
  ["writes_per_minute", "Changes a minute"],
  ["streams_per_token", "Open streams"],
  ["large_reads_per_token", "Large reads at once"],
  ["source_requests_per_organization", "Uploads at once"],
] as const;

/** Shows how often the API may be called: the platform's own numbers. */
function Limits() {
  const capabilities = useCall("self-description.capabilities", {});
  return (
    <Section
      title="Limits of requests"
      lead="Per token; uploads are counted for the whole organization. A request over a limit is refused, with the time after which to try again."
    >
      <View of={capabilities} skeleton={<Skeleton rows={1} height={78} />}>
        {({ limits }) => (
          <dl className="grid grid-cols-2 gap-5 rounded-md border border-line p-5 sm:grid-cols-5">
            {limitLabels.map(([name, label]) => (
              <Fact key={name} label={label}>
                {limits[name] === undefined ? "–" : count(limits[name])}
              </Fact>
            ))}
          </dl>
        )}
      </View>
    </Section>
  );
}

function Rename({ name }: { readonly name: string }) {
  return (
    <ActionDialog
      row="me.update"
      title="Your name"
      submit="Save"
      input={(form) => ({ body: { name: textOf(form, "name").trim() } })}
    >
      <TextField name="name" label="Name" defaultValue={name} autoComplete="name" maxLength={100} required />
    </ActionDialog>
  );
}
