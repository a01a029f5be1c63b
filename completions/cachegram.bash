# SPDX-License-Identifier: Apache-2.0
# bash completion for cachegram. Commands and options are those that the installed cachegram itself lists.
_cachegram()
{
    local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$("$program" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p') --help --version"
    elif [ "$command" = help ]; then
        words=$("$program" help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
    elif [[ $word == -* ]]; then
        words=$("$program" "$command" --help 2>/dev/null | sed -n 's/^  \(-., \)\{0,1\} *\(--[a-z][a-z-]*\).*/\2/p' | sort -u)
    fi
    # shellcheck disable=SC2207 # words without spaces
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _cachegram cachegram
