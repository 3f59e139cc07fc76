/** The command that deploys whatever branch is checked out, for the git remote that `berth create` makes. Every page and hint shows the same one. */
export const firstPush = "git push berth HEAD:main";
