import type { Caller } from "../features/context.ts";
import { escape, table, type PageContent } from "./decision-html.ts";
import { unprovenDays } from "../features/programs/programs.ts";

export interface ShownConsent {
  /** Who consents, in the organization that the program gets. */
  readonly caller: Caller;
  /** All organizations of the person. */
  readonly organizations: readonly { readonly slug: string; readonly name: string }[];
  /** As the program calls itself. */
  readonly program: string;
  /** The host whose document describes the program; null: it registered itself. */
  readonly describedBy: string | null;
  readonly isCommandLine: boolean;
  /** Where a person proves to be there whose sign-in is too old for all that a program may get; null: they have. */
  readonly proof: string | null;
  /** Who gets the answer; null: the program that shows the code which the person typed. */
  readonly receiver: { readonly name: string; readonly isOnThisComputer: boolean } | null;
  /** What may be chosen. */
  readonly projects: readonly string[];
  readonly nonce: string;
  /** What was wrong with the last choice. */
  readonly problem: string | undefined;
  /** The code that the person typed. */
  readonly userCode?: string;
}

export function consentContent(shown: ShownConsent): PageContent {
  const { caller, program, receiver, nonce, problem, userCode, isCommandLine, describedBy, proof } = shown;
  const where = receiver === null ? "the program that shows the code" : answerText(receiver);
  const rows = [
    // In rows of their own: a name could pretend to be more than one.
    ["Program, as it calls itself", escape(program)],
    ["Described by", describedBy === null ? "itself" : `<b>${escape(describedBy)}</b>`],
    ["The answer goes to", where],
    ["Organization", `${escape(caller.org_name)} (${escape(caller.org_slug)})`],
    ["In the name of", escape(caller.token_name)],
    ["It can then", isCommandLine ? commandLineText(proof) : "use the tools at <code>/mcp</code>, and nothing else"],
  ] as const;
  const wrong = problem === undefined ? "" : `<p class="warning">${escape(problem)}</p>`;
  const typed = userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${escape(userCode)}">`;
  const html = `${table(rows)}<p class="warning">${warningOf(receiver)}</p>${wrong}
<form method="post" class="choice"><input type="hidden" name="nonce" value="${escape(nonce)}">${typed}
${organizationOf(shown)}${projectsOf(shown)}${rightsOf(shown)}
<button name="choice" value="allow">Allow</button> <button name="choice" value="deny">Deny</button></form>`;
  return { title: `Connect ${program}?`, html, linksBack: false };
}

function commandLineText(proof: string | null): string {
  if (proof === null) return "do what you may do, and push with git";
  return `do what you may do, and push with git, but not change people, tokens and SSH keys: for that, <a href="${escape(proof)}">sign in again</a> first`;
}

function answerText({ name, isOnThisComputer }: NonNullable<ShownConsent["receiver"]>): string {
  return isOnThisComputer ? `a program on this computer (<code>${escape(name)}</code>)` : `<b>${escape(name)}</b>`;
}

function warningOf(receiver: ShownConsent["receiver"]): string {
  if (receiver === null)
    return "Allow only if you have just started <code>berth login</code> yourself and it shows this code. Nobody else has a reason to send you one.";
  if (receiver.isOnThisComputer)
    return "Allow only if you have just started this yourself: any program on this computer can ask under this name.";
  return `Allow only if you began this at ${escape(receiver.name)}: whoever runs that site gets the access.`;
}

/** Another organization is shown with its own projects before it is granted. */
function organizationOf({ caller, organizations }: ShownConsent): string {
  const hidden = `<input type="hidden" name="organization" value="${escape(caller.org_slug)}">`;
  const others = organizations
    .filter(({ slug }) => slug !== caller.org_slug)
    .map(({ slug, name }) => {
      const text = `${escape(name)} (${escape(slug)})`;
      return `<button name="choice" value="${chosenIn}${escape(slug)}">${text}</button>`;
    });
  if (others.length === 0) return hidden;
  const legend = `<legend>Organization</legend><p>The program reaches ${escape(caller.org_name)} alone. Another one instead:</p>`;
  return `${hidden}<fieldset>${legend}${others.join(" ")}</fieldset>`;
}

/** What the button of another organization sends begins with this. */
export const chosenIn = "in:";

function projectsOf({ projects, caller }: ShownConsent): string {
  const all = caller.project_ids === null ? "All of the organization, later ones too" : "All that you reach";
  const boxes = projects.map(
    (slug) => `<label><input type="checkbox" name="project.${escape(slug)}" value="on"> ${escape(slug)}</label>`,
  );
  const some =
    boxes.length === 0
      ? ""
      : `<label><input type="radio" name="reach" value="some"> Only these:</label><div class="within">${boxes.join("")}</div>`;
  return `<fieldset><legend>Projects</legend><label><input type="radio" name="reach" value="all" checked> ${all}</label>${some}</fieldset>`;
}

function rightsOf({ caller, isCommandLine, proof }: ShownConsent): string {
  const box = (name: string, text: string, isChecked = false) =>
    `<label><input type="checkbox" name="${name}" value="on"${isChecked ? " checked" : ""}> ${text}</label>`;
  const admin =
    isCommandLine && proof === null && caller.platform_admin
      ? box("platform_admin", "Administer the platform, too")
      : "";
  return `<fieldset><legend>Rights</legend>${box("read_only", "Read only")}
${box("approval_mode", "Ask a person before anything irreversible", !isCommandLine)}${admin}</fieldset>
<fieldset><legend>Ends</legend>${endOf(proof)}</fieldset>`;
}

function endOf(proof: string | null): string {
  if (proof !== null)
    return `<p>after ${unprovenDays} days. For longer, <a href="${escape(proof)}">sign in again</a> first.</p>`;
  const options = [7, 30, 90].map(
    (days) => `<option value="${days}"${days === 90 ? " selected" : ""}>${days} days</option>`,
  );
  return `<label>after <select name="days">${options.join("")}</select></label>`;
}

/** Asks for the code that a program shows on another screen. */
export function codeContent(nonce: string, problem?: string): PageContent {
  const wrong = problem === undefined ? "" : `<p class="warning">${escape(problem)}</p>`;
  const html = `<p>Type the code that <code>berth login</code> shows. Go on only if you started it yourself.</p>${wrong}
<form method="post" class="choice"><input type="hidden" name="nonce" value="${escape(nonce)}">
<label>Code<input type="text" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="12" placeholder="XXXX-XXXX" autofocus required></label>
<button name="choice" value="open">Continue</button></form>`;
  return { title: "Log in a command line", html, linksBack: false };
}

const texts = {
  allowed: [
    "Connected",
    "You can close this page and go back to the program. Access in the dashboard lists it, and ends it.",
  ],
  denied: ["Not connected", "The program got no access. You can close this page."],
  elsewhere: [
    "Not connected",
    "The form did not come from this platform's page, or the page was open for too long. Begin again in the program.",
  ],
  fault: ["Not connected", "The platform could not answer. Try again in a moment."],
} as const;

export function resultContent(text: keyof typeof texts): PageContent {
  const [title, sentence] = texts[text];
  return { title, html: `<p>${escape(sentence)}</p>`, linksBack: false };
}

/** Says what is wrong with a program's request. `back` is where the person may take the error; nothing goes there by itself. */
export function wrongContent(sentence: string, back?: { readonly url: string; readonly name: string }): PageContent {
  const link =
    back === undefined ? "" : `<a class="back" href="${escape(back.url)}">Go back to ${escape(back.name)}</a>`;
  return { title: "The program's request is not valid", html: `<p>${escape(sentence)}</p>${link}`, linksBack: false };
}

/** Loads the same page once more from this site: a cookie with `SameSite=Strict` does not arrive when another site links here. */
export function againPage(path: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Berth</title><meta http-equiv="refresh" content="0;url=${escape(path)}"></head><body></body></html>`;
}
