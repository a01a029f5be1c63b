/* SPDX-License-Identifier: Apache-2.0 */
/* The same size and layout as lib_one.c, another result: code kept from the other library shows. */
int plugin(int x, const int *table);
int plugin(int x, const int *table)
{
    int sum = 2;
    for (int i = 0; i < 64; i++)
        sum = sum * 5 - table[i] - x;
    return sum;
}
