import { followProviders } from "../../../contract/follow.ts";
import type { Answer } from "../../../contract/client.ts";
import { useAction } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import { textOf } from "../../data/text-of.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";

const found = "found";

interface FollowDialogProps {
  readonly slug: string;
  /** What the project follows now; null if nothing. */
  readonly of: Answer<"follow.get"> | null;
  readonly onClose: () => void;
}

/** Sets the branch to follow, then shows what to configure at the repository's host. */
export function FollowDialog({ slug, of, onClose }: FollowDialogProps) {
  const follow = useAction("follow.set");
  const why = useWhyNot("follow.set");
  if (follow.data !== undefined) return <NextSteps made={follow.data} onClose={onClose} />;
  const submit = (form: FormData) => {
    const provider = followProviders.find((each) => each === textOf(form, "provider"));
    const token = textOf(form, "token").trim();
    follow.mutate({
      params: { slug },
      body: {
        url: textOf(form, "url").trim(),
        branch: textOf(form, "branch").trim(),
        ...(provider === undefined ? {} : { provider }),
        ...(token === "" ? {} : { token }),
      },
    });
  };
  return (
    <FormDialog
      title={of === null ? "Follow a repository" : "Follow another branch"}
      submit="Follow"
      busy={follow.isPending}
      error={follow.error}
      why={why}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        name="url"
        label="Repository"
        hint="With HTTPS or SSH. For SSH you get a deploy key to add there."
        required
        mono
        maxLength={2048}
        autoComplete="off"
        placeholder="git@github.com:acme/shop.git"
        defaultValue={of?.url ?? ""}
      />
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          name="branch"
          label="Branch"
          required
          mono
          maxLength={250}
          autoComplete="off"
          defaultValue={of?.branch ?? "main"}
        />
        <SelectField
          name="provider"
          label="Kind of host"
          defaultValue={of?.provider ?? found}
          options={[
            [found, "Found by its name"],
            ...followProviders.map((each) => [each, providerNames[each]] as const),
          ]}
        />
      </div>
      <TextField
        name="token"
        label="Access token"
        hint={
          of?.has_token === true
            ? "Empty: the present one stays."
            : "Only for a private repository over HTTPS, and for commit statuses. It is sealed when it is stored."
        }
        type="password"
        autoComplete="off"
        maxLength={1024}
      />
    </FormDialog>
  );
}

const providerNames = { github: "GitHub", gitlab: "GitLab", gitea: "Gitea", other: "Another git server" } as const;

/** Shows what to configure at the repository's host. No later response contains the secret. */
function NextSteps({ made, onClose }: { readonly made: Answer<"follow.set">; readonly onClose: () => void }) {
  return (
    <Dialog title="Let the repository's host know" onClose={onClose}>
      <div className="flex flex-col gap-5 text-sm">
        {made.public_key !== null && (
          <div className="flex flex-col gap-2">
            <p>
              <b className="font-medium">Deploy key.</b> Add it to the repository; reading is enough.
            </p>
            <Command>{made.public_key}</Command>
          </div>
        )}
        <div className="flex flex-col gap-2">
          <p>
            <b className="font-medium">Webhook.</b> For pushes, with the content type <code>application/json</code>.
            Without it, Berth checks the branch every few minutes.
          </p>
          <Command>{made.hook_url}</Command>
          {made.secret === null ? (
            <p className="text-muted">Its secret stays the one that was shown when following began.</p>
          ) : (
            <>
              <p>Its secret, which is shown this once:</p>
              <Command>{made.secret}</Command>
            </>
          )}
        </div>
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
