! Regions in Fortran: the texts have blanks behind them, and nothing else says how long they are.
program marked
  use likwid
  implicit none
  integer :: number, calls, turn
  double precision :: events(4), seconds
  character(16) :: name
  name = 'solve'
  call likwid_markerInit()
  call likwid_markerThreadInit()
  call likwid_markerRegisterRegion(name)
  do turn = 1, 3
    call likwid_markerStartRegion('solve')
    call likwid_markerStopRegion(name)
  end do
  number = 4
  call likwid_markerGetRegion('solve', number, events, seconds, calls)
  if (number /= 2 .or. calls /= 3 .or. seconds <= 0) stop 1
  call likwid_markerResetRegion('solve')
  call likwid_markerGetRegion(name, number, events, seconds, calls)
  if (calls /= 0 .or. events(1) > 0) stop 2
  call likwid_markerNextGroup()
  call likwid_markerClose()
end program marked
