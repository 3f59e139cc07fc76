/** A command in the tree: its path, and what may follow it. */
export interface CompletionNode {
  readonly path: readonly string[];
  readonly words: readonly CompletionWord[];
  readonly options: readonly CompletionWord[];
}

interface CompletionWord {
  readonly word: string;
  readonly summary: string;
}

// Shell code that collects the words that name commands, and skips options and their values as far as it recognizes them.
const commandPath = (words: string) => `  local path="" word
  for word in ${words}; do
    case "$word" in -*) ;; *) _berth_knows "$path $word" && path="$path $word" ;; esac
  done`;

export function bashCompletion(nodes: readonly CompletionNode[], asked: readonly string[]): string {
  return `# Completion of berth for bash.
${knowsFunction(nodes)}
_berth() {
  local current="\${COMP_WORDS[COMP_CWORD]}"
${commandPath('"${COMP_WORDS[@]:1:COMP_CWORD-1}"')}
  local words=""
  case "$path" in
${nodes.map((node) => `    '${pathOf(node)}') words='${[...node.words, ...node.options].map(({ word }) => word).join(" ")}' ;;`).join("\n")}
  esac
  local -a before=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  case "\${COMP_WORDS[COMP_CWORD-1]}:$path" in
    -p:*|--project:*) words=$("\${COMP_WORDS[0]}" complete -- "\${before[@]}" 2>/dev/null) ;;
    ${patterns(asked)}) words="$words $("\${COMP_WORDS[0]}" complete -- "\${before[@]}" 2>/dev/null)" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _berth berth
`;
}

export function zshCompletion(nodes: readonly CompletionNode[], asked: readonly string[]): string {
  return `#compdef berth
# Completion of berth for zsh.
${knowsFunction(nodes)}
_berth() {
${commandPath('"${(@)words[2,CURRENT-1]}"').replace(/\bpath\b/g, "reached")}
  local -a answers
  case "$reached" in
${nodes.map((node) => `    '${pathOf(node)}') answers=(${[...node.words, ...node.options].map(zshAnswer).join(" ")}) ;;`).join("\n")}
  esac
  case "\${words[CURRENT-1]}:$reached" in
    -p:*|--project:*) answers=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}") ;;
    ${patterns(asked)}) answers+=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}") ;;
  esac
  _describe berth answers || _files
}
if [ "$funcstack[1]" = "_berth" ]; then _berth "$@"; else compdef _berth berth; fi
`;
}

export function fishCompletion(nodes: readonly CompletionNode[], asked: readonly string[]): string {
  const lines = nodes.flatMap((node) => {
    const condition = `-n '__berth_reached ${quoteInFish(pathOf(node))}'`;
    const words = node.words.map(
      ({ word, summary }) => `complete -c berth -f ${condition} -a ${word} -d ${fishText(summary)}`,
    );
    const options = node.options
      .filter(({ word }) => word.startsWith("--"))
      .map(({ word, summary }) => `complete -c berth ${condition} -l ${word.slice(2)} -d ${fishText(summary)}`);
    return [...words, ...options];
  });
  const further = asked.map(
    (path) => `complete -c berth -f -n '__berth_reached ${quoteInFish(path)}' -a '(__berth_words)'`,
  );
  return `# Completion of berth for fish.
function __berth_reached
  set -l reached ""
  for word in (commandline -opc)[2..-1]
    switch "$reached $word"
      case ${knownPaths(nodes)
        .map((path) => `'${path}'`)
        .join(" ")}
        set reached "$reached $word"
    end
  end
  test "$reached" = "$argv[1]"
end
function __berth_words
  berth complete -- (commandline -opc)[2..-1] 2>/dev/null
end
${[...lines, ...further].join("\n")}
complete -c berth -s p -l project -x -a '(berth complete -- --project 2>/dev/null)'
`;
}

/** Returns shell patterns for the commands that platform words may follow, with any word before the cursor. */
function patterns(asked: readonly string[]): string {
  return asked.map((path) => `*:'${path}'`).join("|");
}

function knowsFunction(nodes: readonly CompletionNode[]): string {
  return `_berth_knows() {
  case "$1" in
    ${knownPaths(nodes)
      .map((path) => `'${path}'`)
      .join("|")}) return 0 ;;
  esac
  return 1
}`;
}

function knownPaths(nodes: readonly CompletionNode[]): string[] {
  return nodes.filter((node) => node.path.length > 0).map(pathOf);
}

function pathOf({ path }: CompletionNode): string {
  return path.map((word) => ` ${word}`).join("");
}

function zshAnswer({ word, summary }: CompletionWord): string {
  return `'${`${word}:${summary}`.replaceAll("'", `'\\''`)}'`;
}

function fishText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

// Quotes a path in double quotes, for use inside a single-quoted condition.
function quoteInFish(path: string): string {
  return `"${path}"`;
}
