import type { Answer, CallInput } from "../../../contract/client.ts";
import { followProviders } from "../../../contract/follow.ts";
import { textOf, SelectField, TextField } from "../../ui/field.tsx";

const found = "found";

interface FollowFieldsProps {
  readonly of: Answer<"follow.get"> | null;
  readonly onUrl?: (url: string) => void;
}

/** The fields of a form that says which branch to follow; `of` is what the project follows now. */
export function FollowFields({ of, onUrl }: FollowFieldsProps) {
  return (
    <>
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
        onChange={(event) => onUrl?.(event.target.value)}
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
    </>
  );
}

export function followIn(form: FormData): CallInput<"follow.set">["body"] {
  const provider = followProviders.find((each) => each === textOf(form, "provider"));
  const token = textOf(form, "token").trim();
  return {
    url: textOf(form, "url").trim(),
    branch: textOf(form, "branch").trim(),
    ...(provider === undefined ? {} : { provider }),
    ...(token === "" ? {} : { token }),
  };
}

const providerNames = { github: "GitHub", gitlab: "GitLab", gitea: "Gitea", other: "Another git server" } as const;
