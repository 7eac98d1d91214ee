

inPlaceholder*
dtype0
D
callPartitionedCallin*

fR
f*
Tout
2*
Tin
2

useIdentitycall*
T0Z
X

f
x
y
innerIdentityx*
T0"
yinner:output:02
c
y_RetVal_0