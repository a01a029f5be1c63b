/* SPDX-License-Identifier: Apache-2.0 */
/* One of two libraries that dl_loop loads in turn, usually at the same address; see lib_two.c. */
int plugin(int x, const int *table);
int plugin(int x, const int *table)
{
    int sum = 1;
    for (int i = 0; i < 64; i++)
        sum = sum * 3 + table[i] + x;
    return sum;
}
