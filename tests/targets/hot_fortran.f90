! SPDX-License-Identifier: Apache-2.0
! Fortran keeps columns together: to walk along rows touches another line each time.
module grid
  implicit none
  integer, parameter :: n = 1024
  real(8) :: field(n, n)
contains
  function along_rows() result(total)
    real(8) :: total
    integer :: row, column
    total = 0
    do row = 1, n
      do column = 1, n
        total = total + field(row, column) ! misses
      end do
    end do
  end function along_rows
end module grid

program hot_fortran
  use grid
  implicit none
  character(len=16) :: argument
  integer :: rounds, i
  real(8) :: total
  call get_command_argument(1, argument)
  read (argument, *) rounds
  field = 1
  total = 0
  do i = 1, rounds
    field(i, i) = i
    total = total + along_rows()
  end do
  print '(f0.1)', total
end program hot_fortran
