! SPDX-License-Identifier: Apache-2.0
! The mass of bodies of 128 bytes, in an order that no prefetcher knows.
module bodies
  implicit none
  integer, parameter :: n = 16384
  type body
    real(8) :: place(8)
    real(8) :: mass
    real(8) :: speed(7)
  end type body
  type(body) :: all_bodies(n)
contains
  function total_mass() result(total)
    real(8) :: total
    integer :: i, at
    total = 0
    at = 0
    do i = 1, n
      total = total + all_bodies(at + 1)%mass ! misses
      at = mod(at * 5 + 12345, n)
    end do
  end function total_mass
end module bodies

program hot_fields
  use bodies
  implicit none
  character(len=16) :: argument
  integer :: rounds, i
  real(8) :: total
  call get_command_argument(1, argument)
  read (argument, *) rounds
  total = 0
  do i = 1, rounds
    all_bodies(i)%mass = i
    total = total + total_mass()
  end do
  print '(f0.1)', total
end program hot_fields
